//! Writes the traces under `examples/`; run by `cargo xtask examples` from the repository root.

use std::fs::File;
use std::io::{BufWriter, Write};

use wavetank_trace::requests::mooncake;
use wavetank_trace::synth::conversation::Conversations;

fn main() -> std::io::Result<()> {
    let chat = Conversations {
        requests: 500,
        sessions_per_second: 1.0,
        most_turns: 6,
        system_prompts: 8,
        tokens_per_id: 512,
        seed: 42,
    };
    let single = Conversations { most_turns: 1, sessions_per_second: 8.0, ..chat.clone() };
    for (name, shape) in [("conversation", chat), ("single_turn", single)] {
        let mut file = BufWriter::new(File::create(format!("examples/{name}.jsonl"))?);
        for row in shape.rows() {
            mooncake::write(&row, &mut file)?;
        }
        file.flush()?;
    }
    Ok(())
}
