package amqpsource_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"redrive/internal/source"
)

// TestSource_AHugeMessageHoldsUpNoOther leaves it in its queue, and shows those around it.
func TestSource_AHugeMessageHoldsUpNoOther(t *testing.T) {
	huge := amqp.Publishing{MessageId: "huge", Body: bytes.Repeat([]byte("x"), 9_000_000)}
	b := newOrders(t, order("1"), huge, order("2"))
	page, err := b.origin.Scan(t.Context(), "", 500)
	b.check(err)
	want := "It has 9.0 MB, which is larger than the limit of 8.0 MB for a record."
	if len(page.Records) != 2 || len(page.Refused) != 1 || page.Refused[0].Why != want {
		t.Fatalf("%d records, refused %+v", len(page.Records), page.Refused)
	}

	// A replay would publish what is not held.
	r := page.Records[0]
	r.Key = page.Refused[0].Key
	results, err := b.origin.Act(t.Context(), []source.Act{{ID: 1, Kind: source.Replay, Mode: source.Once, Record: r}})
	b.check(err)
	if len(results) != 1 || results[0].State != source.Refused || !strings.Contains(results[0].Why, "larger than the limit") {
		t.Errorf("%+v", results)
	}
	if left := b.Take(b.queues[0]); len(left) != 3 || len(left[1].Body) != len(huge.Body) {
		t.Errorf("%d messages are left", len(left))
	}
}

// A page of large messages ends early, and the next one goes on after it.
func TestSource_APageOfLargeMessagesEndsBeforeItIsTooLarge(t *testing.T) {
	var many []amqp.Publishing
	for i := range 12 {
		many = append(many, amqp.Publishing{MessageId: fmt.Sprint(i), Body: bytes.Repeat([]byte("x"), 1<<20)})
	}
	b := newOrders(t, many...)
	var pages []int
	for after := ""; len(pages) == 0 || after != ""; {
		page, err := b.origin.Scan(t.Context(), after, 500)
		b.check(err)
		pages = append(pages, len(page.Records))
		after = page.Next
	}
	if !slices.Equal(pages, []int{8, 4}) {
		t.Errorf("the pages have %d messages", pages)
	}
}
