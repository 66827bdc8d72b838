// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

// redisConfig makes the server answer everybody, and acknowledge a write only
// when it is on disk: what was acknowledged can then be counted on. There are
// no snapshots, which would only repeat what the append-only file has.
const redisConfig = `bind * -::*
protected-mode no
dir /data
appendonly yes
appendfsync always
save ""
`

// redis describes an image with the Redis server of Debian. It keeps its data
// in /data, as the image of the Redis project does, and has the user ID of that.
// A volume there needs securityContext.fsGroup: 999.
func redis(tag, cacheDir string) DebOptions {
	return DebOptions{
		Packages: []string{"busybox-static", "redis-server"},
		CacheDir: cacheDir,
		Users:    []User{{Name: "redis", ID: databaseUser}},
		Files: append(databaseFiles("redis:"+tag, "/data"),
			File{Path: "/etc/redis/redis.conf", Content: []byte(redisConfig)}),
		Config: Config{
			Entrypoint: []string{"/usr/bin/redis-server", "/etc/redis/redis.conf"},
			Env:        []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
			Ports:      []int{6379},
			User:       databaseOwner,
			WorkingDir: "/data",
		},
	}
}
