package tocsin

import "context"

// Destinations are the hosts to which timers are sent. A destination is an http or https URL, of which scheme, host and port count.
type Destinations struct{ part }

// List returns destinations in use lately, and those that are paused, of all nodes: first those that are paused, those with an
// open breaker, and those for which most timers wait. There are at most wanted.Limit; Further is how many it leaves out.
func (d *Destinations) List(ctx context.Context, wanted ListDestinations) (*DestinationList, error) {
	return ask[DestinationList](ctx, &d.part, &call{operation: "listDestinations", body: constant(wanted)})
}

// Pause lets no attempt to the destination begin on any node until Resume; timers wait, without using up attempts.
func (d *Destinations) Pause(ctx context.Context, destination string) (*Destination, error) {
	return d.change(ctx, "pauseDestination", destination)
}

// Resume ends a pause.
func (d *Destinations) Resume(ctx context.Context, destination string) (*Destination, error) {
	return d.change(ctx, "resumeDestination", destination)
}

// Probe has each node whose breaker is open try one waiting timer at once; a success closes the breaker.
func (d *Destinations) Probe(ctx context.Context, destination string) (*Destination, error) {
	return d.change(ctx, "probeDestination", destination)
}

func (d *Destinations) change(ctx context.Context, operation, destination string) (*Destination, error) {
	body := constant(DestinationName{Destination: destination})
	return ask[Destination](ctx, &d.part, &call{operation: operation, body: body})
}
