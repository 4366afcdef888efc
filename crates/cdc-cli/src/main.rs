//! The binary `cdc`.

fn main() -> std::process::ExitCode {
    cdc_cli::process(std::env::args_os())
}
