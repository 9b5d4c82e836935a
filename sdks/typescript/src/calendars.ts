/** Calendars. */

import { bodyOf } from "./core/bodies.js";
import { ask, remove, update } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import { encodeCalendarId, encodeDeleteCalendar, encodeListCalendars, encodePutCalendar } from "./generated/codecs.js";
import type {
  Calendar,
  CalendarId,
  CalendarSummary,
  DeleteCalendar,
  ListCalendars,
  PutCalendar,
} from "./generated/models.js";
import { Pages } from "./pages.js";

/** Dates by name, such as holidays, that schedules skip, or on which alone they fire. */
export class Calendars {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /**
   * Creates the calendar, or replaces all that it has. From then on, no schedule fires at an instant that it excludes.
   * TooManyCalendars: the namespace has as many as it can have. VersionConflict: it has not the expected version; 0: there must
   * be none.
   */
  async put(calendar: PutCalendar, options?: CallOptions): Promise<Calendar> {
    const { namespace, name } = calendar;
    return update(
      this.session,
      "Calendar",
      { operation: "putCalendar", body: bodyOf(encodePutCalendar(calendar)) },
      { operation: "getCalendar", body: bodyOf(encodeCalendarId({ namespace, name })) },
      this.session.limits(options),
    );
  }

  /** The calendar with its dates. CalendarNotFound: there is none. */
  async get(id: CalendarId, options?: CallOptions): Promise<Calendar> {
    return ask(this.session, "Calendar", "getCalendar", encodeCalendarId(id), options);
  }

  /** The calendars of a namespace, by name, without their dates; `limit` is the size of a page. */
  list(query: Omit<ListCalendars, "cursor">, options?: CallOptions): Pages<CalendarSummary> {
    return new Pages(async (cursor) => {
      const body = encodeListCalendars({ ...query, cursor });
      const page = await ask(this.session, "CalendarPage", "listCalendars", body, options);
      return { elements: page.calendars, next: page.nextCursor };
    });
  }

  /**
   * Deletes a calendar. CalendarNotFound: there is none. CalendarInUse: schedules name it. VersionConflict: it has not the
   * expected version.
   */
  async delete(calendar: DeleteCalendar, options?: CallOptions): Promise<void> {
    const { namespace, name } = calendar;
    await remove(
      this.session,
      { operation: "deleteCalendar", body: bodyOf(encodeDeleteCalendar(calendar)) },
      { operation: "getCalendar", body: bodyOf(encodeCalendarId({ namespace, name })) },
      () => false,
      this.session.limits(options),
    );
  }
}
