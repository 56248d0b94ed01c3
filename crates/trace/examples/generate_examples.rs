//! Writes the traces under `examples/`; run by `cargo xtask examples` from the repository root.

use std::fs::File;
use std::io::{BufWriter, Write};

use wavetank_trace::requests::mooncake;
use wavetank_trace::synth::conversation::{Arrivals, Conversations};
use wavetank_trace::synth::lengths::{Lengths, Shape};

fn main() -> std::io::Result<()> {
    let chat = Conversations::example();
    let single = Conversations {
        turns: Lengths { shape: Shape::Uniform(1, 1), most: 1 },
        arrivals: Arrivals::Interleaved { per_second: 8.0 },
        ..chat.clone()
    };
    for (name, shape) in [("conversation", chat), ("single_turn", single)] {
        let mut file = BufWriter::new(File::create(format!("examples/{name}.jsonl"))?);
        for row in shape.rows() {
            mooncake::write(&row, &mut file)?;
        }
        file.flush()?;
    }
    Ok(())
}
