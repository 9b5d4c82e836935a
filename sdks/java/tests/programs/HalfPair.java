import dev.tocsin.client.ItemResult;
import dev.tocsin.client.Json;
import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.model.CreateTimer;
import java.time.Duration;
import java.util.List;

/** Creates three timers, of which two have half of a surrogate pair, on the server of the first argument. */
class HalfPair {
    public static void main(String[] arguments) {
        try (TocsinClient client = Tocsin.client(arguments[0]).build()) {
            for (ItemResult each : client.timers().createMany(List.of(
                    timer("id-\ud800"), timer("whole-\ud83d\ude00"), timer("payload").payload(Json.of("\ude00"))))) {
                System.out.println(each.error() == null ? each.timer().status() : each.error().getMessage());
            }
        }
    }

    private static CreateTimer timer(String id) {
        return CreateTimer.of("default", id, "http://127.0.0.1:9/").delay(Duration.ofDays(1));
    }
}
