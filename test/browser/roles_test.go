package browser_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"redrive/test/rig"
)

// guarded is the dashboard as its own process, with a user of each role, one
// dead letter and a preview of its replay.
type guarded struct {
	url   string
	pages []string
}

func startGuarded(t *testing.T) guarded {
	t.Helper()
	home := newHome(t, "unknown_type: dead_letter")
	home.addUser("ana", "admin", rig.AnaPassword)
	home.addUser("bo", "viewer", rig.BoPassword)
	home.addUser("cy", "operator", rig.BoPassword)
	token := home.newToken("setup", "admin")
	p := home.start()
	var made struct{ Job struct{ ID string } }
	call := func(path, body string, into any) {
		r, err := http.NewRequest(http.MethodPost, p.URL+"/api/v1"+path, bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %s, %v", path, answer.Status, err)
		}
	}
	call("/jobs", `{"type":"order.ship","queue":"orders","payload":{"n":1,"password":"hidden"}}`, &made)
	id := made.Job.ID
	call("/operations", `{"kind":"replay","jobs":[{"id":"`+id+`","run":1}]}`, &made)
	return guarded{p.URL, []string{
		"/", "/failures", "/dead-letters", "/operations", "/operations/1", "/trash", "/jobs", "/jobs/" + id, "/jobs/" + id + "/replay",
		"/queues", "/queues/orders", "/workers", "/policies", "/audit",
	}}
}

// as logs in by the page.
func (b *browser) as(url, name, password string) {
	b.t.Helper()
	b.run(chromedp.Navigate(url+"/login"), chromedp.WaitVisible(chromedp.CSS(`input[name="password"]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name="name"]`), name), chromedp.SendKeys(chromedp.CSS(`input[name="password"]`), password),
		chromedp.Click(chromedp.CSS(`.login button`)), chromedp.WaitVisible(chromedp.CSS(`.user summary`)))
}

// leave logs out by the page.
func (b *browser) leave() {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS(`.user summary`)), chromedp.Click(chromedp.CSS(`.user form button`)),
		chromedp.WaitVisible(chromedp.CSS(`input[name="password"]`)))
}

// forbidden are the buttons of a page that change something and are off
// because of the role, and those that are not.
const forbidden = `((buttons) => ({
		off: buttons.filter((b) => b.disabled && b.title.startsWith("Your role")).map((b) => b.title),
		on: buttons.filter((b) => !(b.disabled && b.title.startsWith("Your role"))).map((b) => b.outerHTML.slice(0, 200)),
	}))([...document.querySelectorAll('main form[method="post"] button:not([type="button"])')])`

type offered struct{ Off, On []string }

// selects is whether a page has what leads to an act: rows to select, a job to edit.
const selects = `document.querySelector('main [data-pick], main form[data-bulk], main a[href*="/replay"]') !== null`

// Each role sees every page that it may see, with every button: those that it
// may not use are off and say why, those that it may are not.
func TestRoles_ButtonsSayWhyTheyAreOff(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	b := openBrowser(t)
	off := map[string]int{}
	for _, user := range [][]string{{"bo", "viewer", rig.BoPassword}, {"cy", "operator", rig.BoPassword}, {"ana", "admin", rig.AnaPassword}} {
		name, role := user[0], user[1]
		b.as(g.url, name, user[2])
		for _, page := range g.pages {
			b.run(chromedp.Navigate(g.url + page))
			found := eval[offered](b, forbidden)
			off[role] += len(found.Off)
			if role == "viewer" && len(found.On) > 0 {
				t.Errorf("%s offers a viewer %s", page, strings.Join(found.On, "\n"))
			}
			if said := strings.Count(b.text("#notices"), "Read-only."); said != map[string]int{"viewer": 1}[role] {
				t.Errorf("%s says %d times to the %s that it is read-only", page, said, role)
			}
			if role == "viewer" && eval[bool](b, selects) {
				t.Errorf("%s lets a viewer select rows, or edit a job", page)
			}
			for _, why := range found.Off {
				if !strings.HasPrefix(why, "Your role "+role+" may not ") || !strings.Contains(why, "; ask an ") {
					t.Errorf("%s: a button says %q", page, why)
				}
			}
		}
		if has := eval[bool](b, `document.querySelector('.side [data-section="access"]') !== null`); has != (role == "admin") {
			t.Errorf("the navigation of the %s leads to Access: %t", role, has)
		}
		b.run(chromedp.Navigate(g.url + "/access"))
		if got := b.text("main"); strings.Contains(got, "Your role "+role+" does not allow this; ask an admin") == (role == "admin") {
			t.Errorf("to the %s /access says:\n%s", role, got)
		}
		b.quiet("403")
		b.leave()
	}
	if off["viewer"] < 10 || off["operator"] != 1 || off["admin"] != 0 {
		t.Errorf("off are %v; want many for the viewer, the reveal alone for the operator, and none for the admin", off)
	}
	b.calm()
}

// An admin adds a user and makes a token by the page alone; the last admin stays; a user
// who is removed is out at once. Axe finds nothing on the way.
func TestRoles_AnAdminManagesAccess(t *testing.T) {
	t.Parallel()
	anAdminManagesAccess(t, 1)
}

// The same, with every page looked at in every view.
func TestLong_RolesAnAdminManagesAccessInEveryView(t *testing.T) {
	t.Parallel()
	anAdminManagesAccess(t, len(looks))
}

// anAdminManagesAccess looks at each page in so many views.
func anAdminManagesAccess(t *testing.T, views int) {
	t.Helper()
	in := func(n int) []look { return slices.Concat(looks, looks)[n : n+views] }
	g := startGuarded(t)
	b := openBrowser(t)
	axe := findAxe(t)
	b.run(chromedp.Navigate(g.url + "/login"))
	b.sound(axe, "the login", in(0))
	b.as(g.url, "ana", rig.AnaPassword)
	b.run(chromedp.Navigate(g.url + "/access"))
	eval[chromedp.Void](b, `document.querySelectorAll("main details").forEach((d) => { d.open = true; })`)
	b.sound(axe, "the page", in(1))
	if why := eval[string](b, `document.querySelector('form[action="/access/users/ana/remove"] button').title`); why != "ana is the last admin; make someone else an admin first" {
		t.Errorf("the button that removes the last admin says %q", why)
	}
	b.run(chromedp.SendKeys(chromedp.CSS(`form[action="/access/users"] [name="name"]`), "dee"),
		chromedp.SendKeys(chromedp.CSS(`form[action="/access/users"] [name="password"]`), rig.BoPassword),
		chromedp.Click(chromedp.CSS(`form[action="/access/users"] button`)))
	b.arrive("dee is a user", `document.querySelector('form[action="/access/users/dee/role"]') !== null`)
	b.run(chromedp.SendKeys(chromedp.CSS(`form[action="/access/tokens"] [name="name"]`), "ci"),
		chromedp.Click(chromedp.CSS(`form[action="/access/tokens"] button`)))
	b.arrive("the token is shown", `document.querySelector("[data-secret]")?.textContent.startsWith("redrive_") ?? false`)
	b.sound(axe, "the token", in(2))

	other := openBrowser(t)
	other.as(g.url, "dee", rig.BoPassword)
	other.wait("dee's page is live", isLive)
	b.run(chromedp.Navigate(g.url + "/access"))
	b.pressOn(`form[action="/access/users/dee/remove"] button`)
	b.arrive("dee is gone", `document.querySelector("h1") !== null && document.querySelector('form[action="/access/users/dee/role"]') === null`)
	other.wait("dee's page is not live any more", `!`+isLive)
	other.run(chromedp.Navigate(g.url+"/jobs"), chromedp.WaitVisible(chromedp.CSS(`input[name="password"]`)))
	b.calm()
}
