/** Destinations, with their breakers. */

import { ask } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import { encodeDestinationName, encodeListDestinations } from "./generated/codecs.js";
import type { Destination, DestinationList, DestinationName, ListDestinations } from "./generated/models.js";

/** The hosts to which timers are sent. `destination` is an http or https URL, of which scheme, host and port count. */
export class Destinations {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /**
   * Destinations in use lately, and those that are paused, of all nodes: first those that are paused, those with an open breaker,
   * and those for which most timers wait. There are at most `limit`; `further` is how many it leaves out.
   */
  async list(wanted: ListDestinations = {}, options?: CallOptions): Promise<DestinationList> {
    return ask(this.session, "DestinationList", "listDestinations", encodeListDestinations(wanted), options);
  }

  /** Lets no attempt to the destination begin on any node until `resume`; timers wait, without using up attempts. */
  async pause(name: DestinationName, options?: CallOptions): Promise<Destination> {
    return ask(this.session, "Destination", "pauseDestination", encodeDestinationName(name), options);
  }

  /** Ends a pause. */
  async resume(name: DestinationName, options?: CallOptions): Promise<Destination> {
    return ask(this.session, "Destination", "resumeDestination", encodeDestinationName(name), options);
  }

  /** Has each node whose breaker is open try one waiting timer at once; a success closes the breaker. */
  async probe(name: DestinationName, options?: CallOptions): Promise<Destination> {
    return ask(this.session, "Destination", "probeDestination", encodeDestinationName(name), options);
  }
}
