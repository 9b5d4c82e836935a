package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"tocsin.dev/go/tocsin"
)

// calendars are dates by name, which schedules skip, or on which alone they fire.
func calendars() *kind {
	ends := map[string]attr.Type{"first": types.StringType, "last": types.StringType}
	none := types.SetValueMust(types.ObjectType{AttrTypes: ends}, []attr.Value{})
	return &kind{
		name:        "calendar",
		description: "A calendar: dates by name, such as holidays. Schedules skip its dates, or fire only on them.",
		key:         []string{"namespace", "name"},
		attributes: joined(marks(), attributes{
			"namespace": naming("The namespace's name."),
			"name":      naming("The calendar's name, unique in its namespace."),
			"time_zone": textOr("UTC", "The IANA time zone in which its dates begin and end."),
			"dates":     texts("Single dates, as `2027-12-25`."),
			"ranges": schema.SetNestedAttribute{
				MarkdownDescription: "Ranges of dates, both ends included.", Optional: true, Computed: true,
				Default: setdefault.StaticValue(none),
				NestedObject: schema.NestedAttributeObject{Attributes: attributes{
					"first": required(text("The first date.")),
					"last":  required(text("The last date.")),
				}},
			},
			"weekdays":    texts("Weekdays, of every week: `MON` to `SUN`."),
			"description": text("What it is for, in one line."),
		}),
		validate: func(configured tree) map[string]string {
			for _, name := range []string{"dates", "ranges", "weekdays"} {
				if given, ok := configured[name].([]any); configured[name] == unknown || ok && len(given) > 0 {
					return nil
				}
			}
			return map[string]string{"dates": "has none; give dates, ranges or weekdays"}
		},
		predict: func(tree, tree) {},
		create: func(ctx context.Context, client *tocsin.Client, sent object) (object, error) {
			calendar, err := sentAs[tocsin.PutCalendar](sent)
			if err != nil {
				return nil, err
			}
			calendar.ExpectedVersion = tocsin.Some(0)
			return answered(client.Calendars.Put(ctx, calendar))
		},
		update: func(ctx context.Context, client *tocsin.Client, sent object, _ map[string]bool) (object, error) {
			calendar, err := sentAs[tocsin.PutCalendar](sent)
			if err != nil {
				return nil, err
			}
			return answered(client.Calendars.Put(ctx, calendar))
		},
		read: func(ctx context.Context, client *tocsin.Client, key []string) (object, error) {
			return present(answered(client.Calendars.Get(ctx, key[0], key[1])))
		},
		remove: func(ctx context.Context, client *tocsin.Client, key []string, version int) error {
			return gone(client.Calendars.DeleteVersion(ctx, key[0], key[1], version))
		},
	}
}
