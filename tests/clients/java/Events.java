import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.util.Properties;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** The events of a running connector, in the order in which it gives them. */
final class Events implements AutoCloseable {
    /** Events that may wait; the connector waits when there are more. */
    private static final int WAITING_MAX = 10_000;
    /** How long the connector may take for an event, its start included. */
    private static final long EVENT_LIMIT_SECONDS = 60;

    private final BlockingQueue<ChangeEvent<String, String>> waiting =
            new ArrayBlockingQueue<>(WAITING_MAX);
    private final ExecutorService thread = Executors.newSingleThreadExecutor();
    private final DebeziumEngine<ChangeEvent<String, String>> engine;
    private volatile String end;

    Events(Properties properties) {
        engine = DebeziumEngine.create(Json.class)
                .using(properties)
                .using((success, message, error) -> {
                    end = message + (error == null ? "" : ": " + error);
                })
                .notifying(event -> {
                    try {
                        waiting.put(event);
                    } catch (InterruptedException interrupted) {
                        Thread.currentThread().interrupt();
                    }
                })
                .build();
        thread.execute(engine);
    }

    /** The next event; waits for it. */
    ChangeEvent<String, String> next() throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(EVENT_LIMIT_SECONDS);
        while (System.nanoTime() < deadline) {
            ChangeEvent<String, String> event = waiting.poll(100, TimeUnit.MILLISECONDS);
            if (event != null) {
                return event;
            }
            if (end != null) {
                throw new Report.Different("the connector ended: " + end);
            }
        }
        throw new Report.Different("no event within " + EVENT_LIMIT_SECONDS + " s");
    }

    @Override
    public void close() throws Exception {
        // An engine that has ended refuses to be closed.
        if (end == null) {
            engine.close();
        }
        thread.shutdown();
        thread.awaitTermination(20, TimeUnit.SECONDS);
    }
}
