import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one JVM, because starting one for each would take most of
 * the tests' time. A line of JSON on stdin {"main": class, "args": [...], "stdin": text} is answered by a line on
 * stdout {"exit": code, "out": text, "err": text}.
 */
public class Tools {
    /** Thrown where a tool would end the JVM. Some tools catch even that and exit again: the first code counts. */
    static class Ended extends Error {
        Ended(int code) {
            super("exit " + code, null, false, false);
        }
    }

    static final ObjectMapper JSON = new ObjectMapper();
    static final List<Runnable> HOOKS = new ArrayList<>();
    static Integer exitCode;

    public static void main(String[] args) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = System.out;
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line))));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    static void end(int code) {
        exitCode = exitCode == null ? code : exitCode;
        throw new Ended(code);
    }

    static Map<String, Object> run(JsonNode request) throws Exception {
        List<String> arguments = new ArrayList<>();
        request.get("args").forEach(argument -> arguments.add(argument.asText()));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(err, true));
        System.setIn(new ByteArrayInputStream(request.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
        int code = call(request.get("main").asText(), arguments.toArray(new String[0]));
        return Map.of("exit", code, "out", out.toString(), "err", err.toString());
    }

    static int call(String main, String[] arguments) throws Exception {
        exitCode = null;
        try {
            Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException wrapped) {
            if (!(wrapped.getCause() instanceof Ended)) {
                wrapped.getCause().printStackTrace();
                return 1;
            }
        } finally {
            HOOKS.forEach(Runnable::run);
            HOOKS.clear();
        }
        return exitCode == null ? 0 : exitCode;
    }
}
