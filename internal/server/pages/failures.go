package pages

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/server/web"
	"redrive/web/templates/failurepage"
)

// failures is the page /failures. Without a state it shows the open groups.
func (p *Pages) failures(c echo.Context) error {
	ctx, now, values := c.Request().Context(), time.Now(), c.QueryParams()
	values.Set("state", cmp.Or(values.Get("state"), string(failures.Open)))
	v := failurepage.List{Frame: p.frame(c, "Failures", "failures"), Queues: p.View.QueueNames(), After: values.Get("after")}
	filter, after, wrong := web.GroupQuery(values)
	filter.State = cmp.Or(filter.State, failures.Open)
	v.Filter, v.Typed, v.Errors = filter, web.TypedGroups(values), byField(wrong)
	var r reads
	into(&r, &v.Tallies)(p.View.GroupTallies(ctx))
	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}
	inTime(&r, &v.List)(p.View.Groups(ctx, now, filter, after, web.PageLimit))
	v.Slow = r.slow
	return p.show(c, r, v.Page())
}

// failure is the page /failures/{fingerprint}.
func (p *Pages) failure(c echo.Context) error {
	ctx, fingerprint := c.Request().Context(), c.Param("fingerprint")
	d, err := p.View.Group(ctx, time.Now(), fingerprint)
	if err != nil {
		return err
	}
	v := failurepage.View{Frame: p.frame(c, d.Class, "failures"), Detail: d}
	v.Keys, v.Read = commonest(d.Jobs)
	if v.Operations, err = p.View.GroupOperations(ctx, fingerprint); err != nil {
		return err
	}
	return p.Show(c, http.StatusOK, v.Page())
}

// maxKeys is how many payload keys the page of a group shows.
const maxKeys = 12

// commonest counts, for each top-level key of the payloads of jobs, how many
// values it has, and which of them most jobs have. Payloads that are no objects,
// or too large to be read here, do not count.
func commonest(jobs []job.Job) (keys []failurepage.PayloadKey, read int) {
	seen := map[string]map[string]int{}
	for _, j := range jobs {
		var object map[string]json.RawMessage
		if json.Unmarshal(j.Payload, &object) != nil || object == nil {
			continue
		}
		read++
		for name, value := range object {
			if seen[name] == nil {
				seen[name] = map[string]int{}
			}
			seen[name][string(value)]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		key := failurepage.PayloadKey{Name: name, Values: len(seen[name])}
		for _, value := range slices.Sorted(maps.Keys(seen[name])) {
			if n := seen[name][value]; n > key.Jobs {
				key.Commonest, key.Jobs = value, n
			}
		}
		keys = append(keys, key)
	}
	slices.SortStableFunc(keys, func(a, b failurepage.PayloadKey) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Values, b.Values))
	})
	return keys[:min(len(keys), maxKeys)], read
}
