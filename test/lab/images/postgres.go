// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

// postgresEntrypoint makes a database where there is none, and becomes the
// server. An initdb that was interrupted leaves a folder that is no database;
// hence the other name until it is done. The kubelet lets the group of a volume
// write to everything in it when it mounts it, which the server refuses for its
// own files; hence chmod.
const postgresEntrypoint = `#!/bin/sh
set -eu
if [ ! -e "$PGDATA" ]; then
    rm -rf "$PGDATA.new"
    initdb --pgdata="$PGDATA.new" --username=postgres --auth=trust --locale=C --encoding=UTF8
    echo "host all postgres all trust" >>"$PGDATA.new/pg_hba.conf"
    sync
    mv "$PGDATA.new" "$PGDATA"
fi
chmod -R u=rwX,g=,o= "$PGDATA"
exec postgres -c listen_addresses='*' -c fsync=on -c synchronous_commit=on "$@"
`

// postgresProgram runs a program of whatever version of PostgreSQL there is.
// Debian's own script of that name looks for a cluster as Debian sets it up.
const postgresProgram = `#!/bin/sh
exec /usr/lib/postgresql/*/bin/"${0##*/}" "$@"
`

// postgres describes an image with the PostgreSQL server of Debian. Everybody
// may connect as postgres. The database is in a folder below
// /var/lib/postgresql/data, so that a volume there may have lost+found; it
// needs securityContext.fsGroup: 999. The user ID and the signal that ends the
// server without waiting for its clients are those of the PostgreSQL image that
// everybody knows.
func postgres(tag, cacheDir string) DebOptions {
	files := append(databaseFiles("postgres:"+tag, "/var/lib/postgresql/data", "/run/postgresql"),
		File{Path: "/usr/bin/entrypoint", Mode: 0o755, Content: []byte(postgresEntrypoint)})
	for _, program := range []string{"initdb", "pg_basebackup", "pg_isready", "postgres", "psql"} {
		files = append(files, File{Path: "/usr/bin/" + program, Mode: 0o755, Content: []byte(postgresProgram)})
	}
	return DebOptions{
		Packages: []string{"busybox-static", "postgresql"},
		CacheDir: cacheDir,
		Users:    []User{{Name: "postgres", ID: databaseUser}},
		Files:    files,
		Config: Config{
			Entrypoint: []string{"/usr/bin/entrypoint"},
			Env: []string{
				"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
				"PGDATA=/var/lib/postgresql/data/pgdata",
				"PGUSER=postgres",
			},
			Ports:      []int{5432},
			User:       databaseOwner,
			StopSignal: "SIGINT",
		},
	}
}
