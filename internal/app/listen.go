package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// local reports whether the dashboard can be reached from this machine only. An
// open socket that it was given is the demo's, which is local.
func (a *App) local() bool { return a.Listener != nil || IsLoopback(a.Listen) }

// checkReach refuses an address that can be reached from the network as long as no
// login is required.
func (a *App) checkReach(context.Context) error {
	if a.local() {
		return nil
	}
	return CheckListen(a.Listen, a.Open || a.store.Accounts.Guarded() || a.Config.Proxy().LogsIn())
}

// checkReachLater is checkReach for a process that stands by for another one: people have to learn at
// its start, and not when it is needed, that it could not take over. If the database does not say now
// whether it has users, checkReach finds out when the process takes over.
func (a *App) checkReachLater(ctx context.Context, database watch) error {
	if a.local() || a.Open || a.Config.Proxy().LogsIn() {
		return nil
	}

	guarded, err := database.Guarded(ctx)
	if err != nil {
		return ctx.Err()
	}

	return CheckListen(a.Listen, guarded)
}

// localURL is the address of the dashboard for programs on this machine.
func (a *App) localURL() string {
	tcp, ok := a.address.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d%s", tcp.Port, a.BasePath)
	}

	return a.URL()
}

// listenAndServe begins to answer requests: pages can be read while the engine
// still cleans up after a crash, and while it stops.
func (a *App) listenAndServe(ctx context.Context) error {
	if a.Listener == nil {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.Listen)
		if err != nil {
			return fmt.Errorf("listen on %s: %w; choose another address with --listen", a.Listen, err)
		}

		a.Listener = listener
	}

	a.address = a.Listener.Addr()
	// Commands that name the database find the dashboard that has it open.
	if err := a.store.Announce(a.localURL(), a.key); err != nil {
		a.Log.Warn("Commands on this machine cannot find this dashboard by its database file.", "error", err)
	}

	web := a.server.HTTP()
	served := make(chan struct{})
	go func() {
		defer close(served)

		if err := web.Serve(a.server.Listen(a.Listener)); !errors.Is(err, http.ErrServerClosed) {
			a.fail(fmt.Errorf("serve HTTP: %w", err))
		}
	}()

	a.onStop("web server", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, httpGrace)
		defer cancel()

		err := web.Shutdown(ctx)
		if ctx.Err() != nil { // requests that are not done by now are cut off
			err = web.Close()
		}

		<-served

		return err
	})

	return nil
}

// takeOver ends the programs that a dead process left running, before any job of
// theirs can be claimed. The pages are there meanwhile.
func (a *App) takeOver(ctx context.Context) error {
	set := a.set.Load()
	if set == nil {
		return nil
	}

	owner, err := a.store.Identity()
	if err != nil {
		return err
	}

	return set.TakeOver(ctx, owner, a.Log)
}
