//! A running statement between the task that reads its connection and the one who takes its
//! batches.

use arrow_array::RecordBatch;
use cdc_core::{Error, ErrorKind};
use futures_util::stream;
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinHandle},
};

use super::{RecordStream, column::BatchBuilder};
use crate::fault::Fault;

/// Batches that wait between connection and reader: one is read while the next is filled.
const BATCHES_WAITING_MAX: usize = 1;

/// Where a task puts its batches.
#[derive(Debug)]
pub(crate) struct Batches(mpsc::Sender<Result<RecordBatch, Fault>>);

impl Batches {
    /// Hands over what is in the making, when it is full.
    ///
    /// # Errors
    /// A fault when nobody reads any more.
    pub(crate) async fn send_full(&self, batch: &mut BatchBuilder) -> Result<(), Fault> {
        if batch.is_full() { self.send(batch).await } else { Ok(()) }
    }

    /// Hands over what is in the making, when there is something.
    ///
    /// # Errors
    /// A fault when nobody reads any more.
    pub(crate) async fn send_rest(&self, batch: &mut BatchBuilder) -> Result<(), Fault> {
        if batch.is_empty() { Ok(()) } else { self.send(batch).await }
    }

    async fn send(&self, batch: &mut BatchBuilder) -> Result<(), Fault> {
        let gone = |_| {
            let error = Error::new(ErrorKind::Cancelled, "nobody reads the rows any more");
            Fault::permanent(error)
        };
        self.0.send(Ok(batch.take()?)).await.map_err(gone)
    }
}

/// Runs what reads a statement, in a task of its own. Its fault is the stream's last item; the
/// stream ends only when it ended well. A stream that is dropped early ends the task.
pub(crate) fn started<F>(read: impl FnOnce(Batches) -> F) -> RecordStream
where
    F: Future<Output = Result<(), Fault>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(BATCHES_WAITING_MAX);
    let task = tokio::spawn(read(Batches(sender)));
    let reading = Reading { receiver, task: Some(task) };
    Box::pin(stream::unfold(reading, |mut reading| async move {
        reading.next().await.map(|item| (item, reading))
    }))
}

/// The reader's end.
struct Reading {
    receiver: mpsc::Receiver<Result<RecordBatch, Fault>>,
    task: Option<JoinHandle<Result<(), Fault>>>,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<RecordBatch, Fault>> {
        if let Some(item) = self.receiver.recv().await {
            return Some(item);
        }
        // No batch will come. Whether that is the end of the rows, the task alone knows.
        let ended = self.task.as_mut()?.await;
        self.task = None;
        match ended {
            Ok(Ok(())) => None,
            Ok(Err(fault)) => Some(Err(fault)),
            Err(error) => Some(Err(broken(&error))),
        }
    }
}

/// The driver itself failed. What it says may quote a value.
fn broken(error: &JoinError) -> Fault {
    let how = if error.is_panic() { "it panicked" } else { "it was stopped" };
    Fault::permanent(Error::bug("the driver broke down within an answer").with("reason", how))
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{Field, Schema};
    use cdc_core::SqlType;
    use futures_util::TryStreamExt;

    use super::*;
    use crate::driver::{Form, ResultColumn};

    fn builder() -> BatchBuilder {
        let form = Form::Sql(SqlType::Int);
        let field = Field::new("n", form.arrow().expect("has a form"), true);
        let column = ResultColumn::new("n", form);
        BatchBuilder::new(Arc::new(Schema::new(vec![field])), &[column], 1).expect("is built")
    }

    /// Reads one row, and then does something else.
    fn after_a_row(then: fn() -> Result<(), Fault>) -> RecordStream {
        started(async move |batches: Batches| {
            let mut batch = builder();
            batch.row(|_, column| column.int(1))?;
            batches.send_full(&mut batch).await?;
            then()
        })
    }

    #[tokio::test]
    async fn the_stream_ends_only_when_the_answer_was_read_to_its_end() {
        let rows = |batches: Vec<RecordBatch>| -> usize {
            batches.iter().map(RecordBatch::num_rows).sum()
        };
        let whole = after_a_row(|| Ok(())).try_collect().await.expect("an end");
        assert_eq!(rows(whole), 1);
        let mut failing = after_a_row(|| Err(Fault::lost("gone")));
        assert!(failing.try_next().await.expect("the row").is_some());
        assert!(failing.try_next().await.expect_err("not the end").transient);
        assert!(failing.try_next().await.expect("the fault was the last item").is_none());
    }

    #[tokio::test]
    async fn a_driver_that_panics_is_an_error_and_no_end() {
        let mut broken = after_a_row(|| panic!("planted value"));
        assert!(broken.try_next().await.expect("the row").is_some());
        let fault = broken.try_next().await.expect_err("not the end");
        assert_eq!((fault.error.kind(), fault.transient), (ErrorKind::Bug, false));
        assert!(!fault.error.report().contains("planted"), "{}", fault.error.report());
    }

    #[tokio::test]
    async fn a_stream_that_is_dropped_ends_its_task() {
        let (alive, ended) = tokio::sync::oneshot::channel::<()>();
        let stream = started(async move |_batches| {
            let _alive = alive;
            std::future::pending().await
        });
        drop(stream);
        assert!(ended.await.is_err());
    }
}
