// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"strings"
)

// maxBody bounds what a request may carry.
const maxBody = 64 << 10

// contentPolicy lets the page load and reach what this server serves and nothing else,
// and keeps text from ever becoming markup or script. The hash is that of the one script
// in the text of the page.
const contentPolicy = "default-src 'none'; script-src 'self' 'sha256-7DJvTYsIRUQ3bXJwoNIav63JEieznGHkyQkWndzL4NE='; " +
	"style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guard lets through who came by the address that was printed, and serves next below it.
// Host keeps other sites from being this one by DNS rebinding, Origin keeps them from
// sending requests, and the token keeps out the other users of the machine.
//
// The token is in the path and not in a cookie: a cookie of 127.0.0.1 is sent to every
// port of it, whoever listens there.
func guard(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		switch {
		case !isLocal(r.Host):
			writeError(w, http.StatusForbidden, "this server is only reached as 127.0.0.1 or localhost")
			return
		case !isSameOrigin(r):
			writeError(w, http.StatusForbidden, "requests from other sites are refused")
			return
		case r.Method == http.MethodPost && !isJSON(r):
			writeError(w, http.StatusUnsupportedMediaType, "send application/json")
			return
		}
		given, path, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			writeError(w, http.StatusForbidden, "use the whole address that kubectl insitu dashboard printed: it holds a secret that is new each time")
			return
		}
		if !ok {
			// Without the slash, relative addresses would lose the token.
			http.Redirect(w, r, "/"+token+"/", http.StatusPermanentRedirect)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		r2 := r.Clone(r.Context())
		r2.URL.Path, r2.URL.RawPath = "/"+path, ""
		next.ServeHTTP(w, r2)
	})
}

func setHeaders(header http.Header) {
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
}

// isLocal reports whether a Host header names this machine. The port is left open: it
// may be forwarded, as by ssh -L.
func isLocal(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return host == "127.0.0.1" || strings.EqualFold(host, "localhost")
}

// isSameOrigin reports whether a request comes from the page itself, or from no page.
func isSameOrigin(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return false
	}
	// A page elsewhere may link to this one, but not read from it.
	site := r.Header.Get("Sec-Fetch-Site")
	isNavigation := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate"
	return site == "" || site == "same-origin" || site == "none" || isNavigation
}

func isJSON(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && mediaType == "application/json"
}
