"""Step times of one deployment, asked from the package that holds the measured tables, as CSV.

Usage: python aic_export.py KEYS, a JSON object of `aic_*` keys. Prints a line of JSON that says where the
times come from, then the CSV that the timing model `grid` reads. Exits with 1 and a sentence on standard
error where it cannot: a grid that is not the package's own measured estimate is never printed.
"""

import json
import math
import os
import sys
from importlib import import_module, metadata

# Distributions, each with the modules that may hold its estimator.
PACKAGES = [
    ("aisimulate", ["aisimulate_core.sdk"]),
    ("aiconfigurator", ["aiconfigurator_core.sdk", "aiconfigurator.sdk"]),
]
MODEL, CONFIG = "RustForwardPassPerfModel", "ForwardPassPerfModelConfig"

NEW = [1, 16, 32, 64, 128, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768]
CONTEXT = [0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 98304, 122880]
BATCH = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384, 512]
LENGTH = [16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 98304, 131071]
LONGEST = 131072
MIXED_NEW = [16, 128, 512, 1024, 1792, 2048, 4096, 8192]
MIXED_CONTEXT = [0, 2048, 8192, 32768]
MIXED_BATCH = [1, 8, 32, 64, 128, 256]
MIXED_LENGTH = [256, 1024, 2048, 4096, 16384]

# Our names of number types, where the package has another.
TYPES = {"auto": None, "bf16": "bfloat16", "fp16": "bfloat16", "float16": "bfloat16", "half": "bfloat16"}
COMMUNICATION = {"auto": None, "bf16": "half", "bfloat16": "half", "fp16": "half", "float16": "half"}


def passes():
    """Every pass of the grid: kind, prompts, new tokens, context, decodes, their length."""
    for new in NEW:
        for context in CONTEXT:
            if new + context <= LONGEST:
                yield "prefill", 1, new, context, 0, 0
    for batch in BATCH:
        for length in LENGTH:
            yield "decode", 0, 0, 0, batch, length
    for new in MIXED_NEW:
        for context in MIXED_CONTEXT:
            for batch in MIXED_BATCH:
                for length in MIXED_LENGTH:
                    yield "mixed", 1, new, context, batch, length


def installed():
    """The first installed package and, where it has them, its two classes."""
    missing = []
    for name, modules in PACKAGES:
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        for module in modules:
            try:
                sdk = import_module(module)
            except ModuleNotFoundError as error:
                if error.name and module.startswith(error.name):
                    continue
                raise
            if hasattr(sdk, MODEL) and hasattr(sdk, CONFIG):
                return found, getattr(sdk, MODEL), getattr(sdk, CONFIG)
        sys.exit(f"{name} {found.version} has no forward-pass estimator ({MODEL}) to ask; try a newer one")
    sys.exit(f"{sys.executable} has no package {' or '.join(missing)}")


def named(keys, key, names):
    """The package's name of a number type; none is the package's own choice."""
    typed = (keys.get(key) or "auto").lower()
    return names.get(typed, typed)


def estimator(model, config, keys):
    """The package's estimator of the deployment; only one that rests on its measured tables will do."""
    types = {
        "gemm_quant_mode": named(keys, "aic_gemm_dtype", TYPES),
        "moe_quant_mode": named(keys, "aic_moe_dtype", TYPES),
        "fmha_quant_mode": named(keys, "aic_fmha_dtype", TYPES),
        "kvcache_quant_mode": named(keys, "aic_kv_cache_dtype", TYPES),
        "comm_quant_mode": named(keys, "aic_comm_dtype", COMMUNICATION),
    }
    asked = config(
        model=keys["aic_model_path"],
        system=keys["aic_system"],
        backend=keys["aic_backend"],
        worker_type="aggregated",
        backend_version=keys.get("aic_backend_version"),
        tp=keys.get("aic_tp_size", 1),
        # The package takes both or none.
        moe_tp_size=keys.get("aic_moe_tp_size", 1 if "aic_moe_ep_size" in keys else None),
        moe_ep_size=keys.get("aic_moe_ep_size", 1 if "aic_moe_tp_size" in keys else None),
        # Kernels alone, as in the built-in profiles: whole measured passes would hold the host's part too.
        estimation_mode="op_level",
        database_mode="SILICON",
        fallback_policy="deny",
        **types,
    )
    built = model.best_available(asked)
    said = built.diagnostics()
    if said.get("source") != "aic" or said.get("readiness") != "ready":
        why = said.get("last_warning") or f"{said.get('source')}, {said.get('readiness')}"
        sys.exit(f"the package has no measured tables of it: {why}")
    resolved = said.get("provenance", {}).get("config", {})
    return built, resolved.get("backend_version") or keys.get("aic_backend_version") or ""


def step_ms(built, row):
    """Milliseconds of a pass."""
    kind, prompts, new, context, batch, length = row
    scheduled = {
        "num_prefill_requests": prompts,
        "sum_prefill_tokens": new,
        "var_prefill_length": 0.0,
        "sum_prefill_kv_tokens": prompts * context,
        "num_decode_requests": batch,
        "sum_decode_kv_tokens": batch * length,
        "var_decode_kv_tokens": 0.0,
    }
    ms = built.estimate_forward_pass_time_ms({"scheduled_requests": scheduled})
    if ms is None or not math.isfinite(ms) or ms <= 0:
        sys.exit(f"the package gives {ms} ms for a {kind} pass of {row[1:]}")
    return ms


def metadata_file(package):
    """The file that an upgrade of the package replaces."""
    for file in package.files or []:
        if file.name == "METADATA":
            return str(package.locate_file(file))
    return ""


def main():
    # What the package prints goes to standard error: standard output is the grid's.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    keys = json.loads(sys.argv[1])
    package, model, config = installed()
    try:
        built, version = estimator(model, config, keys)
        rows = [(row, step_ms(built, row)) for row in passes()]
    except (KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        sys.exit(f"{package.metadata['Name']} {package.version}: {type(error).__name__}: {error}")
    origin = {
        "package": f"{package.metadata['Name']} {package.version}",
        "metadata": metadata_file(package),
        "engine": f"{keys['aic_backend']} {version}".strip(),
    }
    print(json.dumps(origin), file=out)
    print("kind,prefill_batch,prefill_tokens,prefill_context,decode_batch,decode_context,ms", file=out)
    for row, ms in rows:
        print(",".join(map(str, row)) + f",{ms:.6f}", file=out)
    out.close()


if __name__ == "__main__":
    main()
