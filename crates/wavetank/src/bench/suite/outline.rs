//! A plan in words, for people: the machine, what was chosen for it, what is run and how long that takes.

use wavetank_model::TierRole;
use wavetank_report::render::table::framed;

use super::hardware::{Gpu, Hardware};
use super::parameters::{GpuBudget, Parameters};
use super::plan::{Ready, Step, SuitePlan, Task};
use crate::bench::args::GpuTier;

const GIB: f64 = (1u64 << 30) as f64;

/// A line of text: what it is about, and what is said.
type Line = (String, String);

/// The whole plan: what would run, how long that takes, and what would be typed for each scenario.
pub fn outline(plan: &SuitePlan) -> String {
    let chosen: String = chosen_fields(&plan.parameters).iter().map(line).collect();
    let commands: String =
        plan.ready().map(|(step, ready)| format!("# {}\n{}\n", step.title, ready.command)).collect();
    let skipped: String = plan.steps.iter().filter_map(skipped).collect();
    let warnings: String = plan.warnings.iter().map(|warning| format!("Warning: {warning}\n")).collect();
    let count = plan.ready().count();
    let plural = if count == 1 { "" } else { "s" };
    let total = format!("{count} scenario{plural}, at most about {}\n", lasting(plan.seconds()));
    format!("{}{chosen}{}{skipped}{total}{warnings}\n{commands}", machine(plan), table(plan))
}

/// The machine a suite runs on, and its directory, in a few lines.
pub fn machine(plan: &SuitePlan) -> String {
    machine_fields(&plan.hardware).iter().map(line).collect()
}

fn line((name, text): &Line) -> String {
    format!("{name}: {text}\n")
}

/// The same, name by name.
pub(super) fn machine_fields(hardware: &Hardware) -> Vec<Line> {
    let known = |value: Option<String>| value.unwrap_or_else(|| "not known".to_owned());
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / GIB);
    let place = &hardware.place;
    let system = known(place.file_system.clone());
    let below = if place.is_in_memory() { system } else { format!("{system} on {}", place.drive_names()) };
    let free = place.free_bytes.map(|bytes| format!(", {} free", gib(bytes))).unwrap_or_default();
    let gpu = match &hardware.gpu {
        found @ Gpu::Found { free_bytes, .. } => format!("{}, {} free", found.name(), gib(*free_bytes)),
        Gpu::Missing { why } => format!("none ({why})"),
    };
    let mut lines = vec![
        ("Processor".to_owned(), format!("{}, {} cores", known(hardware.cpu.clone()), hardware.cores)),
        ("Memory".to_owned(), known(hardware.memory_bytes.map(gib))),
        ("Kernel".to_owned(), known(hardware.kernel.clone())),
        ("GPU".to_owned(), gpu),
        (
            "Cache directory".to_owned(),
            format!("{} ({}), {below}{free}", place.directory.display(), place.reason),
        ),
    ];
    let others = place.passed_over.iter();
    lines.extend(
        others.map(|other| ("Not taken".to_owned(), format!("{} {}", other.directory.display(), other.why))),
    );
    lines
}

/// What was chosen, name by name.
pub(super) fn chosen_fields(parameters: &Parameters) -> Vec<Line> {
    let Parameters { model, users_baseline, users_high, cpu_half_gb, cpu_eighth_gb, .. } = parameters;
    let gpu = match &parameters.gpu {
        GpuBudget::Used { kind: GpuTier::Sim, gigabytes } => format!("{gigabytes} GiB, modelled"),
        GpuBudget::Used { gigabytes, .. } => format!("{gigabytes} GiB"),
        GpuBudget::None { .. } => "none".to_owned(),
    };
    let rag = match parameters.rag_num_docs {
        0 => "none".to_owned(),
        count => format!("{count}, but not for a submission"),
    };
    let quick = if parameters.quick { " (quick)" } else { "" };
    [
        ("Model", format!("{model}{quick}")),
        ("Users", format!("{users_baseline}, many are {users_high}")),
        ("GPU memory for entries", gpu),
        ("Main memory for entries", format!("{cpu_half_gb} GiB, little is {cpu_eighth_gb} GiB")),
        ("Documents", rag),
        ("Seed", parameters.seed.to_string()),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into()
}

fn table(plan: &SuitePlan) -> String {
    let columns = [
        &["Scenario", "model", "users", "GPU\nGiB", "CPU\nGiB", "storage\nGiB"][..],
        &["warm-up\ns", "measured\ns", "trials", "about"],
    ]
    .concat();
    let mut table = framed(&columns);
    for (step, ready) in plan.ready() {
        table.add_row(cells(step, ready));
    }
    if table.row_count() == 0 { String::new() } else { format!("{table}\n") }
}

fn cells(step: &Step, ready: &Ready) -> Vec<String> {
    let run = &ready.plan.run;
    let gib = |role: TierRole| {
        let tier = run.tiers.iter().find(|tier| tier.role == role);
        let bytes = tier.and_then(|tier| tier.capacity_bytes).unwrap_or(0) as f64;
        format!("{}", (bytes / GIB * 100.0).round() / 100.0)
    };
    vec![
        step.name.clone(),
        ready.plan.model.name.clone(),
        run.users.to_string(),
        gib(TierRole::Gpu),
        gib(TierRole::Cpu),
        gib(TierRole::Storage),
        run.warmup.as_seconds().to_string(),
        run.duration.as_seconds().to_string(),
        ready.plan.trials.most.to_string(),
        lasting(ready.seconds),
    ]
}

fn skipped(step: &Step) -> Option<String> {
    match &step.task {
        Task::Run(_) => None,
        Task::Skip { reason } => Some(format!("Skipped: {}: {reason}\n", step.name)),
    }
}

/// A duration as people say it.
pub fn lasting(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match (seconds.ceil() as u64, minutes) {
        (seconds, _) if seconds < 120 => format!("{seconds} s"),
        (_, minutes) if minutes < 60 => format!("{minutes} min"),
        (_, minutes) => format!("{} h {:02} min", minutes / 60, minutes % 60),
    }
}
