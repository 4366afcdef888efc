//! Watermark: nothing appears at or below a high position that was seen.

use cdc_core::{Lsn, port::Bound};
use cdc_fake::CaptureSchedule;

use crate::rig::{Rig, row};

#[tokio::test]
async fn short_transactions_begun_after_a_long_one_get_lower_lsns() {
    let (rig, instance) = Rig::captured();
    let mut long = rig.database.begin();
    long.insert(&rig.table, row(1, 0)).expect("new key");
    rig.advance(60);
    let short = rig.insert(2, 0);
    let seen = rig.high().await;
    rig.advance(60);
    long.insert(&rig.table, row(3, 0)).expect("new key");
    let long = long.commit().expect("committed");
    assert!(short.lsn < long.lsn, "lsn order is commit order");
    assert_eq!(seen, Some(short.lsn));
    let rows = rig.database.change_rows(&instance).expect("known");
    let commits: Vec<_> = rows.iter().map(|row| row.commit).collect();
    assert_eq!(commits, [short.lsn, long.lsn, long.lsn]);
    // The long transaction's first record stands before the short one's in the log.
    assert!(rows[1].seqval < rows[0].seqval);
}

#[tokio::test]
async fn no_row_appears_at_or_below_a_high_position_that_was_seen() {
    let (rig, instance) = Rig::captured();
    rig.database.set_capture(CaptureSchedule::DEFAULT);
    let mut seen: Vec<(Lsn, usize)> = Vec::new();
    let below = |lsn: Lsn| {
        let rows = rig.database.change_rows(&instance).expect("known");
        rows.iter().filter(|row| row.commit <= lsn).count()
    };
    let mut long = Some(rig.database.begin());
    for id in 0..100 {
        if let Some(long) = &mut long {
            long.insert(&rig.table, row(1000 + id, 0)).expect("new key");
        }
        if id == 70 {
            let long = long.take().expect("open");
            long.commit().expect("committed");
        }
        rig.insert(id, 0);
        rig.advance(1);
        let high = rig.high().await.expect("the enable");
        seen.push((high, below(high)));
    }
    rig.advance(60);
    assert!(seen.iter().all(|(high, rows)| below(*high) == *rows));
}

#[tokio::test]
async fn high_is_null_on_a_database_that_capture_never_wrote_to() {
    let rig = Rig::new();
    rig.insert(1, 1);
    rig.advance(3600);
    assert_eq!(rig.high().await, None);
    let answer = cdc_core::port::PositionLog::high(&rig.source).await;
    assert_eq!(answer.expect("answers"), Bound::Null);
}
