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

// shownClasses is how many error classes the page /failures lists.
const shownClasses = 12

// failures is the page /failures. It shows the open groups unless a state is
// named.
func (p *Pages) failures(c echo.Context) error {
	ctx, now, values := c.Request().Context(), time.Now(), c.QueryParams()
	values.Set("state", cmp.Or(values.Get("state"), string(failures.Open)))
	v := failurepage.List{Frame: p.frame(c, "Failures", "failures"), After: values.Get("after")}
	filter, after, wrong := web.GroupQuery(values)
	filter.State = cmp.Or(filter.State, failures.Open)
	v.Filter, v.Typed, v.Errors = filter, web.TypedGroups(values), byField(wrong)

	var r reads
	into(&r, &v.Queues)(p.QueueChoices(ctx))
	into(&r, &v.Tallies)(p.View.GroupTallies(ctx))

	for _, t := range v.Tallies {
		if t.State == failures.Open { // the navigation says it, too
			v.Snapshot.OpenGroups = t.Groups
		}
	}

	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}

	inTime(&r, &v.List)(p.View.Groups(ctx, now, filter, after, web.PageLimit))

	if filter.Text == "" && filter.Class == "" && v.After == "" {
		inTime(&r, &v.Classes)(p.View.RollUp(ctx, now, filter, shownClasses))
	}

	v.Slow = r.slow

	return p.show(c, r, v.Page())
}

// failure is the page /failures/{fingerprint}: what fails alike, since when, and
// what the payloads of the failed jobs have in common.
func (p *Pages) failure(c echo.Context) error {
	ctx, fingerprint := c.Request().Context(), c.Param("fingerprint")

	v := failurepage.View{Frame: p.frame(c, "", "failures")}
	var err error

	v.Detail, err = p.View.Group(ctx, v.Now, fingerprint)
	if err != nil {
		return err
	}

	v.Now = time.Now().UTC() // all that was counted is from before, so that a selection of all has that number

	v.Title = v.Class
	v.Keys, v.Read = commonest(v.Jobs)

	v.Operations, err = p.View.GroupOperations(ctx, fingerprint)
	if err != nil {
		return err
	}

	if v.Class != "" {
		v.Alike, err = p.View.RollUp(ctx, v.Now, failures.Filter{State: failures.Open, Class: v.Class}, 1)
		if err != nil {
			return err
		}
	}

	return p.Show(c, http.StatusOK, v.Page())
}

// maxKeys is how many payload keys the page of a group shows. Payloads can have any
// number of them.
const maxKeys = 12

// commonest counts, for each top-level key of the payloads of some jobs, how
// many values it has and how many jobs share the most frequent one. Payloads
// that are no objects, or too large to be read here, do not count.
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

	// In the order of names and values, so that equal counts give the same page each time.
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
