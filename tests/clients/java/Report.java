import java.util.Objects;

/** Says how each check came out, in the lines that README.md describes. */
final class Report {
    /** A client saw something else than what was committed. */
    static final class Different extends Exception {
        private static final long serialVersionUID = 1;

        Different(String message) {
            super(message);
        }
    }

    /** What a check does. */
    interface Check {
        void run() throws Exception;
    }

    private boolean broken;

    /** Runs a check and says how it came out. What rests on one that failed is not run. */
    void check(String name, Check check) {
        if (broken) {
            say("failed", name, "what it rests on failed");
        } else {
            broken = !apart(name, check);
        }
    }

    /** Runs a check that no other rests on; says whether it passed. */
    boolean apart(String name, Check check) {
        try {
            check.run();
            say("passed", name);
            return true;
        } catch (Different difference) {
            say("failed", name, difference.getMessage());
        } catch (Exception error) {
            error.printStackTrace();
            say("failed", name, error.toString());
        }
        return false;
    }

    /** Says that every check was made. */
    void end() {
        System.out.println("end");
        System.out.flush();
    }

    static void equal(Object found, Object expected, String what) throws Different {
        if (!Objects.equals(found, expected)) {
            throw new Different(what + ": " + found + " instead of " + expected);
        }
    }

    private static void say(String... parts) {
        for (int at = 0; at < parts.length; at++) {
            parts[at] = String.valueOf(parts[at]).replaceAll("\\s+", " ");
        }
        System.out.println(String.join("\t", parts));
        System.out.flush();
    }
}
