import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.error.TransportException;
import dev.tocsin.client.error.VersionConflictException;
import dev.tocsin.client.model.CreateNamespace;
import dev.tocsin.client.model.CreateSchedule;
import dev.tocsin.client.model.FlowLimits;
import dev.tocsin.client.model.PutCalendar;
import dev.tocsin.client.model.PutFlow;
import dev.tocsin.client.model.PutMonitor;
import dev.tocsin.client.model.UpdateNamespace;
import dev.tocsin.client.model.UpdateSchedule;
import java.time.Duration;
import java.util.List;

/** Changes of objects that must have a version, at a proxy that loses the first answer to each. */
class LostAnswers {
    public static void main(String[] arguments) {
        try (TocsinClient client = Tocsin.client(arguments[0]).build()) {
            client.namespaces().create(CreateNamespace.of("lost"));
            UpdateNamespace described = UpdateNamespace.of("lost").retention(Duration.ofHours(1)).expectedVersion(1L);
            System.out.println("namespace " + client.namespaces().update(described).version());
            CreateSchedule schedule = CreateSchedule.of("lost", "s", "http://127.0.0.1:1/").cron("0 3 * * *").paused(true)
                    .expectedVersion(0L);
            System.out.println("schedule " + client.schedules().create(schedule).version());
            UpdateSchedule change = UpdateSchedule.of("lost", "s").description("daily").expectedVersion(1L);
            System.out.println("schedule " + client.schedules().update(change).version());
            PutFlow flow = PutFlow.of("lost", "mail:").perKey(FlowLimits.of().parallelism(3L)).expectedVersion(0L);
            System.out.println("flow " + client.flows().put(flow).version());
            PutCalendar calendar = PutCalendar.of("lost", "c").dates(List.of("2027-12-25")).expectedVersion(0L);
            System.out.println("calendar " + client.calendars().put(calendar).version());
            for (PutMonitor monitor : List.of(
                    PutMonitor.of("lost", "s").schedule("s"), PutMonitor.of("lost", "m").every(Duration.ofHours(1)).dryRun(true),
                    PutMonitor.of("lost", "m").every(Duration.ofHours(1)))) {
                try {
                    System.out.println("monitor " + client.monitors().put(monitor).monitor().id());
                } catch (TransportException lost) {
                    System.out.println("monitor " + (lost.maybeDone() ? "may be there" : "was not asked for"));
                }
            }
            client.calendars().put(calendar);
        } catch (VersionConflictException refused) {
            System.out.println(refused.getClass().getSimpleName());
        }
    }
}
