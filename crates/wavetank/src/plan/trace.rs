//! The flags of recorded traces.

use wavetank_model::{Error, Result};
use wavetank_trace::requests::{self, Blocks, Entry, SharedPrefix, Source};

use super::WorkloadPlan;
use crate::args::ReplayArgs;

/// What the flags say of a trace.
pub(super) fn workload(args: &ReplayArgs, warnings: &mut Vec<String>) -> Result<WorkloadPlan> {
    let format = args.trace_format.as_deref();
    if let Some(format) = format {
        requests::find(format).map_err(|error| error.at("--trace-format"))?;
    }
    let source = Source::of(&args.trace_files, format)?;
    let format = source.format;
    if format.provides.blocks == Blocks::Absent {
        let idle =
            [("--trace-block-size", args.trace_block_size.is_some()), ("--clamp-input", args.clamp_input)];
        let typed = idle.into_iter().filter(|(_, typed)| *typed);
        let name = format.name;
        warnings.extend(typed.map(|(flag, _)| format!("{flag} has no effect: {name} has no hash ids")));
    }
    let default_size = match format.provides.blocks {
        Blocks::Of(tokens) => Some(tokens),
        Blocks::Absent | Blocks::Told => None,
    };
    Ok(WorkloadPlan::Trace {
        paths: source.paths(),
        format: format.name.to_owned(),
        trace_block_size: args.trace_block_size.or(default_size),
        clamp_input: args.clamp_input,
        fill: args.fill.unwrap_or_default(),
        shared_prefix: shared_prefix(args, format, warnings)?,
    })
}

/// What sessions share, where the format leaves it open.
fn shared_prefix(args: &ReplayArgs, format: &Entry, warnings: &mut Vec<String>) -> Result<SharedPrefix> {
    let (ratio, groups) = (args.trace_shared_prefix_ratio, args.trace_num_prefix_groups);
    for (flag, typed) in
        [("--trace-shared-prefix-ratio", ratio.is_some()), ("--trace-num-prefix-groups", groups.is_some())]
    {
        if typed && !format.provides.chosen_prefixes {
            let takers = requests::ALL.iter().filter(|entry| entry.provides.chosen_prefixes);
            let names: Vec<&str> = takers.map(|entry| entry.name).collect();
            return Err(Error::usage(format!("belongs to the {} format", names.join(" or "))).at(flag));
        }
    }
    let shared = SharedPrefix { ratio: ratio.unwrap_or(0.0), groups: groups.unwrap_or(0) };
    let idle = |flag: &str, other: &str| format!("{flag} has no effect: nothing is shared without {other}");
    if shared.ratio > 0.0 && shared.groups == 0 {
        warnings.push(idle("--trace-shared-prefix-ratio", "--trace-num-prefix-groups"));
    }
    if shared.groups > 0 && shared.ratio == 0.0 {
        warnings.push(idle("--trace-num-prefix-groups", "--trace-shared-prefix-ratio"));
    }
    Ok(shared)
}
