import dev.tocsin.receiver.Answer;
import dev.tocsin.receiver.Handler;
import dev.tocsin.receiver.Receiver;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** The response to the batch of the second argument, whose payloads name the errors of its handler. */
class Batches {
    public static void main(String[] arguments) {
        Handler handler = firing -> {
            switch (firing.payload().toString()) {
                case "\"assertion\"":
                    throw new AssertionError("a defect");
                case "\"stack\"":
                    throw new StackOverflowError();
                case "\"memory\"":
                    throw new OutOfMemoryError("of all");
                default:
                    return Answer.fail("ä".repeat(firing.body().length > 1_000 ? 1_000 : 200));
            }
        };
        Map<String, String> headers = Map.of("webhook-id", "batch_" + "0".repeat(32), "webhook-timestamp", "1");
        try {
            byte[] body = arguments[1].getBytes(StandardCharsets.UTF_8);
            System.out.println(Receiver.unsigned().handle(headers, body, handler).body());
        } catch (OutOfMemoryError error) {
            System.out.println(error.getMessage());
        }
    }
}
