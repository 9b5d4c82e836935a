import dev.tocsin.receiver.Answer;
import dev.tocsin.receiver.Receiver;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Callbacks of 1 MiB by the Java receiver: see bench/clients/callbacks.py. */
class Callbacks {
    interface Work {
        void run() throws Exception;
    }

    private static final int[] NUMBERS = {1, 10, 4_000};
    private static final Pattern PEAK = Pattern.compile("VmHWM:\\s+(\\d+)");
    // The time of the process is counted in steps of 10 ms.
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    static int callback(Receiver receiver, String[] args, int number, byte[] body) {
        String signatures = number == 1
                ? args[3] : String.join(" ", Collections.nCopies(number, "v1," + "A".repeat(43) + "="));
        Map<String, String> headers = Map.of("webhook-id", args[1], "webhook-timestamp", args[2],
                "webhook-signature", signatures, "tocsin-namespace", "default", "tocsin-timer-id", "large");
        return receiver.handle(headers, body, firing -> Answer.done()).status();
    }

    static long peakKb() throws Exception {
        Matcher found = PEAK.matcher(Files.readString(Path.of("/proc/self/status")));
        found.find();
        return Long.parseLong(found.group(1));
    }

    static String milliseconds(int rounds, Work work) throws Exception {
        List<String> times = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            long began = THREADS.getCurrentThreadCpuTime();
            work.run();
            times.add(Double.toString((THREADS.getCurrentThreadCpuTime() - began) / 1e6));
        }
        return "\"ms\": [" + String.join(", ", times) + "]";
    }

    public static void main(String[] args) throws Exception {
        Logger.getLogger("").setLevel(Level.OFF);
        int rounds = Integer.parseInt(args[0]);
        byte[] body = new byte[1024 * 1024];
        Arrays.fill(body, (byte) 'x');
        byte[] small = {'x'};
        Receiver receiver = Receiver.of(Arrays.copyOfRange(args, 4, args.length));
        for (int number : NUMBERS) {
            for (int made = 0; made < 100; made++) {
                callback(receiver, args, number, small);
            }
        }
        List<String> first = new ArrayList<>();
        for (int number : NUMBERS) {
            Files.writeString(Path.of("/proc/self/clear_refs"), "5"); // the peak starts over
            long before = peakKb();
            int status = callback(receiver, args, number, body);
            first.add("\"status\": " + status + ", \"bytes\": " + (peakKb() - before) * 1024);
        }
        List<String> results = new ArrayList<>();
        for (int i = 0; i < NUMBERS.length; i++) {
            int number = NUMBERS[i];
            String times = milliseconds(rounds, () -> callback(receiver, args, number, body));
            results.add("\"" + number + "\": {" + first.get(i) + ", " + times + "}");
        }
        results.add("\"hash\": {" + milliseconds(rounds, () -> {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec("key".getBytes(), "HmacSHA256"));
            mac.doFinal(body);
        }) + "}");
        System.out.println("{" + String.join(", ", results) + "}");
    }
}
