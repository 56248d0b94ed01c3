//! The JSON of `--router-config` (spec/replay.md 6.1): every key is a row of [`KEYS`].

use serde_json::Value;
use wavetank_model::Result;
use wavetank_sim::queues;
use wavetank_sim::routers::KvConfig;

use crate::json_arg::JsonArg;
use crate::keys::{
    self, Check, Table, at_least_one, boolean, fraction, inert, limit, not_negative, sets, text, uint,
};
use crate::timing_arg;

type Key = keys::Key<KvConfig>;

const TABLE: Table<KvConfig> = Table { kind: "router-args", keys: KEYS };

/// Builds the configuration from typed arguments; warnings go to `notes`.
pub(crate) fn config(typed: &JsonArg, notes: &mut Vec<String>) -> Result<KvConfig> {
    let mut config = KvConfig::default();
    TABLE.read(typed, &mut config, notes)?;
    Ok(config)
}

const LIVE: &str = "it concerns live routers, not replay";
/// Keys that need tiers behind the GPU's memory.
pub(crate) const TIERS: [&str; 2] = ["disk_cache_hit_weight", "host_cache_hit_weight"];
const SHARED: &str = "a shared cache is `--tier NAME=SIZE:SPEED,shared`";
const CONDITIONAL: &str = "it concerns live disaggregated serving";

fn share(value: &Value) -> Result<f64, String> {
    fraction(value)?;
    not_negative(value)
}

const ANY_BOOLEAN: Check = |value| boolean(value).map(drop);
const ANY_AMOUNT: Check = |value| not_negative(value).map(drop);
const ANY_TEXT: Check = |value| text(value).map(drop);

/// Every key; what has an effect first. `wavetank list router-args` prints this table.
pub(crate) const KEYS: &[Key] = &[
    sets(
        "decode_active_request_weight",
        "cost of each request in flight, in blocks (0.0)",
        |config, value| {
            config.decode_active_request_weight = not_negative(value)?;
            Ok(())
        },
    ),
    sets(TIERS[0], "the same per block of tiers behind the first, 0 to 1 (0.25)", |config, value| {
        config.disk_cache_hit_weight = share(value)?;
        Ok(())
    }),
    sets(TIERS[1], "the same per block of the first tier, 0 to 1 (0.75)", |config, value| {
        config.host_cache_hit_weight = share(value)?;
        Ok(())
    }),
    sets("overlap_score_credit", "blocks of prompt work forgiven per cached block (1.0)", |config, value| {
        config.overlap_score_credit = not_negative(value)?;
        Ok(())
    }),
    sets("overlap_score_credit_decay", "how fast that fades on loaded workers (0.0)", |config, value| {
        config.overlap_score_credit_decay = not_negative(value)?;
        Ok(())
    }),
    sets(
        "overlap_score_weight",
        "older name of prefill_load_scale; 0 also sets the credit to 0",
        |config, value| {
            config.prefill_load_scale = not_negative(value)?;
            if config.prefill_load_scale == 0.0 {
                config.overlap_score_credit = 0.0;
            }
            Ok(())
        },
    ),
    sets("prefill_load_scale", "weight of prompt work against active blocks (1.0)", |config, value| {
        config.prefill_load_scale = not_negative(value)?;
        Ok(())
    }),
    sets("router_assume_kv_reuse", "whether active blocks are shared by prefix (true)", |config, value| {
        config.router_assume_kv_reuse = boolean(value)?;
        Ok(())
    }),
    sets(
        "router_prefill_load_model",
        "\"none\", a row of `wavetank list timing`, or \"aic\" with the --aic-* flags (none)",
        |config, value| {
            config.router_prefill_load_model = match value.as_str() {
                // The flags of "aic" are no keys: the plan puts the model in.
                Some("none" | "aic") => None,
                _ => Some(timing_arg::of_json(value)?),
            };
            Ok(())
        },
    ),
    sets("router_queue_policy", "a row of `wavetank list queues` (fcfs)", |config, value| {
        let found = queues::policy(text(value)?).map_err(|error| error.to_string().replace('\n', "; "))?;
        config.router_queue_policy = found.name.to_owned();
        Ok(())
    }),
    limit(
        "router_queue_threshold",
        "passes of prompt work above which a worker is busy (4.0); null: never queue",
        |config, value| {
            config.router_queue_threshold = if value.is_null() { None } else { Some(not_negative(value)?) };
            Ok(())
        },
    ),
    sets("router_temperature", "randomness of the choice (0.0)", |config, value| {
        config.router_temperature = not_negative(value)?;
        Ok(())
    }),
    sets("router_track_active_blocks", "whether active blocks count (true)", |config, value| {
        config.router_track_active_blocks = boolean(value)?;
        Ok(())
    }),
    sets("router_track_prefill_tokens", "whether prompt work in flight counts (true)", |config, value| {
        config.router_track_prefill_tokens = boolean(value)?;
        Ok(())
    }),
    inert("conditional_disagg_busy_threshold", ANY_AMOUNT, CONDITIONAL),
    inert("conditional_disagg_eff_isl", ANY_AMOUNT, CONDITIONAL),
    inert("conditional_disagg_enabled", ANY_BOOLEAN, CONDITIONAL),
    inert("conditional_disagg_policy", ANY_TEXT, CONDITIONAL),
    inert("conditional_disagg_ratio", ANY_AMOUNT, CONDITIONAL),
    inert("durable_kv_events", ANY_BOOLEAN, LIVE),
    inert("router_event_threads", |value| at_least_one(value).map(drop), LIVE),
    inert("router_max_tree_size", |value| uint(value).map(drop), LIVE),
    inert("router_policy_config", ANY_TEXT, "queue policies are keys of --router-config"),
    inert("router_predicted_ttl_secs", ANY_AMOUNT, LIVE),
    inert("router_prune_target_ratio", fraction, LIVE),
    inert("router_replica_sync", ANY_BOOLEAN, LIVE),
    inert("router_reset_states", ANY_BOOLEAN, LIVE),
    inert("router_snapshot_threshold", |value| uint(value).map(drop), LIVE),
    inert("router_track_output_blocks", ANY_BOOLEAN, "replay reports no output blocks to the router"),
    inert("router_tracking_hash", ANY_TEXT, LIVE),
    inert("router_ttl_secs", ANY_AMOUNT, LIVE),
    inert("serve_indexer", ANY_BOOLEAN, LIVE),
    inert("shared_cache_multiplier", fraction, SHARED),
    inert("shared_cache_type", ANY_TEXT, SHARED),
    inert("skip_initial_worker_wait", ANY_BOOLEAN, LIVE),
    inert("use_kv_events", ANY_BOOLEAN, "replay always uses them"),
    inert("use_remote_indexer", ANY_BOOLEAN, LIVE),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_arg;

    fn parse(json: &str) -> (Result<KvConfig>, Vec<String>) {
        let mut notes = Vec::new();
        let typed = json_arg::read("--router-config", Some(json)).unwrap();
        (config(&typed, &mut notes), notes)
    }

    #[test]
    fn keys_reach_the_router() {
        let json = r#"{"router_temperature":0.5,"router_queue_policy":"wspt","router_queue_threshold":null,
            "router_prefill_load_model":{"name":"fixed","prefill_ms":1,"decode_ms":1},
            "overlap_score_credit":0.25,"host_cache_hit_weight":0.5,"disk_cache_hit_weight":0}"#;
        let config = parse(json).0.unwrap();
        assert_eq!((config.router_temperature, config.router_queue_threshold), (0.5, None));
        assert_eq!((config.router_queue_policy.as_str(), config.overlap_score_credit), ("wspt", 0.25));
        assert_eq!((config.host_cache_hit_weight, config.disk_cache_hit_weight), (0.5, 0.0));
        assert_eq!(config.router_prefill_load_model.unwrap().name, "fixed");
    }

    #[test]
    fn the_older_weight_scales_the_prompt_term() {
        let weighted = parse(r#"{"overlap_score_weight":2}"#).0.unwrap();
        assert_eq!((weighted.prefill_load_scale, weighted.overlap_score_credit), (2.0, 1.0));
        let off = parse(r#"{"overlap_score_weight":0}"#).0.unwrap();
        assert_eq!((off.prefill_load_scale, off.overlap_score_credit), (0.0, 0.0));
    }

    #[test]
    fn inert_keys_are_said_and_wrong_ones_refused() {
        let (config, notes) = parse(r#"{"use_kv_events":true,"router_ttl_secs":60}"#);
        assert_eq!(config.unwrap(), KvConfig::default());
        assert_eq!(notes.len(), 2, "{notes:?}");
        let error = parse(
            r#"{"router_temperature":-1,"router_queue_policy":"sjf","temperature":1,
            "router_prefill_load_model":"guess","overlap_score_credit":"x"}"#,
        );
        let message = error.0.unwrap_err().to_string();
        for part in [
            "\"router_temperature\": must be a number, 0 or more",
            "unknown queue policy \"sjf\"; hint: known: fcfs, lcfs, wspt",
            "unknown key \"temperature\"",
            "unknown timing model \"guess\"",
            "\"overlap_score_credit\"",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
}
