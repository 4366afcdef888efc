//! The measurements, a module for each line.

pub(crate) mod append;
pub(crate) mod cycles;
pub(crate) mod engine;
pub(crate) mod huge;
pub(crate) mod live_files;
pub(crate) mod log;
pub(crate) mod parquet;
pub(crate) mod postgres;
pub(crate) mod server;
pub(crate) mod small;
pub(crate) mod time;
pub(crate) mod wire;

#[cfg(test)]
mod tests {
    use crate::{Figure, Line, Scale, Target};

    /// Runs a line at its small size. Its values mean nothing, but they must be there.
    fn quick(line: Line) -> Vec<Figure> {
        let mut figures = Vec::new();
        line.measure(Scale::Quick, &mut |figure| figures.push(figure))
            .unwrap_or_else(|error| panic!("{}: {error}", line.name()));
        assert!(figures.iter().all(|figure| figure.value.is_finite()), "{figures:?}");
        figures
    }

    fn has_targets(line: Line, count: usize) {
        let figures = quick(line);
        let targets = figures.iter().filter(|figure| figure.target != Target::None).count();
        assert_eq!(targets, count, "{figures:?}");
    }

    #[test]
    fn append_measures_one_core_and_two() {
        has_targets(Line::Append, 2);
    }

    #[test]
    fn the_engine_is_measured_against_its_parts() {
        has_targets(Line::Engine, 1);
    }

    #[test]
    fn a_huge_commit_is_measured_in_memory_and_speed() {
        has_targets(Line::Huge, 2);
    }

    #[test]
    fn cycles_are_measured_idle_and_busy() {
        has_targets(Line::Cycles, 4);
    }

    #[test]
    fn the_log_is_measured_while_it_grows() {
        has_targets(Line::Log, 6);
    }

    #[test]
    fn a_table_of_many_files_takes_a_commit() {
        has_targets(Line::LiveFiles, 1);
    }

    #[test]
    fn small_commits_and_commit_times_are_measured() {
        has_targets(Line::Small, 1);
        has_targets(Line::Time, 1);
    }

    #[test]
    fn the_server_is_measured_in_rows_time_connections_and_memory() {
        has_targets(Line::Server, 6);
    }

    #[test]
    fn the_wire_is_measured_in_rows_memory_connections_and_time() {
        let with_both = cfg!(feature = "mssql-tds");
        has_targets(Line::Wire, if with_both { 13 } else { 6 });
    }

    #[test]
    fn the_sink_on_postgresql_is_measured_where_there_is_a_server() {
        let figures = quick(Line::Postgres);
        // Without a server the line says so, and fails where CDC_REQUIRE names it.
        if !figures.is_empty() {
            let targets = figures.iter().filter(|figure| figure.target != Target::None).count();
            assert_eq!(targets, 2, "{figures:?}");
        }
    }

    #[test]
    fn settings_of_parquet_are_compared_without_a_target() {
        has_targets(Line::Parquet, 0);
    }
}
