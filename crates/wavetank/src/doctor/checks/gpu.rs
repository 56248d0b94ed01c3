//! Whether a GPU tier can be on a real device: the driver, its devices and their memory.

use serde_json::{Value, json};
use wavetank_store::backends::DeviceMemory;

use super::super::finding::{Finding, gib};
use super::super::subject::Subject;
use super::Check;
use crate::host::disk::entries;

pub(super) const ENTRY: Check =
    Check { name: "gpu", about: "NVIDIA's driver, its devices and their memory", look };

/// The vendor's number on the PCI bus.
const NVIDIA: &str = "0x10de";
const MODELLED: &str = "--gpu-tier sim and the gpu_sim backend model one on any machine";

fn look(subject: &Subject) -> Finding {
    match (subject.trials.gpus)() {
        Ok(devices) if devices.is_empty() => {
            Finding::note("the driver has no device", remedy(subject)).with("devices", json!([]))
        }
        Ok(devices) => found(&devices, &subject.host.gpu_models()),
        Err(error) => {
            let why = error.message().trim_start_matches("cuda: ");
            Finding::note(format!("none: {why}"), remedy(subject)).with("devices", json!([]))
        }
    }
}

fn found(devices: &[DeviceMemory], models: &[String]) -> Finding {
    // The driver lists all, and a process may be allowed fewer: names are sure only where they are as many.
    let model = |at: usize| models.get(at).filter(|_| models.len() == devices.len());
    let told = |(at, device): (usize, &DeviceMemory)| {
        let name = model(at).map_or("a GPU", String::as_str);
        format!("{name}, {}, {} free", gib(device.total_bytes), gib(device.free_bytes))
    };
    let facts = devices.iter().enumerate().map(|(at, device)| {
        json!({ "model": model(at), "bytes": device.total_bytes, "free_bytes": device.free_bytes })
    });
    let words: Vec<String> = devices.iter().enumerate().map(told).collect();
    Finding::ok(words.join("; ")).with("devices", facts.collect::<Vec<Value>>())
}

/// What to do where none can be used: more than nothing if there is one.
fn remedy(subject: &Subject) -> String {
    let vendor = |folder: &std::path::PathBuf| std::fs::read_to_string(folder.join("vendor")).ok();
    let mut cards = entries(&subject.host.at("/sys/bus/pci/devices")).into_iter();
    let has_card = cards.any(|card| vendor(&card).is_some_and(|vendor| vendor.trim() == NVIDIA));
    let has_driver = subject.host.at("/proc/driver/nvidia/version").exists();
    let first = match (has_driver, has_card) {
        (true, _) => "the kernel has the driver, but this process not: in a container, docker run --gpus all",
        (false, true) => "there is a card without a driver: install NVIDIA's, then nvidia-smi shows it",
        (false, false) => "nothing, if there is no GPU",
    };
    format!("{first}; {MODELLED}")
}

#[cfg(test)]
mod tests {
    use wavetank_model::Error;

    use super::super::super::Verdict;
    use super::super::super::tests::Machine;
    use super::*;

    /// Broken by: a machine with a card that is told nothing can be done.
    #[test]
    fn what_is_missing_is_told_by_what_there_is() {
        let mut machine = Machine::sound();
        machine.trials.gpus = || Err(Error::unsupported("cuda: no NVIDIA driver: libcuda.so.1 is not found"));
        let found = look(&machine.subject());
        assert_eq!(found.found, "none: no NVIDIA driver: libcuda.so.1 is not found");
        let said = || look(&machine.subject()).remedy.unwrap();
        assert!(said().starts_with("nothing, if there is no GPU"));
        machine.system.write("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
        assert!(said().starts_with("there is a card without a driver"));
        machine.system.write("/proc/driver/nvidia/version", "NVRM version: 580\n");
        assert!(said().contains("docker run --gpus all"));
    }

    #[test]
    fn devices_are_told_with_their_memory() {
        let mut machine = Machine::sound();
        machine.trials.gpus = || Ok(vec![DeviceMemory { free_bytes: 20 << 30, total_bytes: 24 << 30 }]);
        assert_eq!(look(&machine.subject()).found, "a GPU, 24.0 GiB, 20.0 GiB free");
        machine.system.write("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\tH200\n");
        let found = look(&machine.subject());
        assert_eq!((found.verdict, found.found.as_str()), (Verdict::Ok, "H200, 24.0 GiB, 20.0 GiB free"));
        assert_eq!(found.facts["devices"][0]["bytes"], 24u64 << 30);
        machine.system.write("/proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: \t\tT4\n");
        assert!(look(&machine.subject()).found.starts_with("a GPU, "), "one of the two, and not known which");
        machine.trials.gpus = || Ok(Vec::new());
        assert_eq!(look(&machine.subject()).verdict, Verdict::Note);
    }
}
