// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import "fmt"

// nginxConfig makes nginx stay in the foreground, log to the container's
// output, and end within two seconds however many connections are open.
const nginxConfig = `daemon off;
user www-data;
worker_processes 1;
worker_shutdown_timeout 2s;
pid /run/nginx.pid;
error_log /dev/stderr notice;

events {
    worker_connections 512;
}

http {
    include /etc/nginx/mime.types;
    access_log /dev/stdout;
    server {
        listen 80;
        root /usr/share/nginx/html;
    }
}
`

// nginxPage has one %s, the tag.
const nginxPage = `<!DOCTYPE html>
<html>
<head><title>Welcome to nginx:%[1]s</title></head>
<body><h1>Welcome to nginx:%[1]s</h1></body>
</html>
`

// nginx describes an image with the nginx of Debian, which serves a page that
// names the tag. As in the image of the nginx project, SIGQUIT ends it. The
// shell and the few tools that hooks and probes use come from busybox.
func nginx(tag, cacheDir string) DebOptions {
	files := []File{
		{Path: "/etc/nginx/nginx.conf", Content: []byte(nginxConfig)},
		{Path: "/usr/share/nginx/html/index.html", Content: fmt.Appendf(nil, nginxPage, tag)},
	}
	files = append(files, busybox("cat", "echo", "env", "kill", "ls", "ps", "sh", "sleep", "test", "wget")...)
	return DebOptions{
		Packages: []string{"busybox-static", "nginx"},
		CacheDir: cacheDir,
		Users:    []User{{Name: "www-data", ID: 33}},
		Files:    files,
		Config: Config{
			Entrypoint: []string{"/usr/sbin/nginx"},
			Env:        []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
			Ports:      []int{80},
			StopSignal: "SIGQUIT",
		},
	}
}
