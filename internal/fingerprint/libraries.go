package fingerprint

import (
	"slices"
	"strings"
)

// isForeignPlace reports whether a place is in a library or in the language itself.
func isForeignPlace(place string) bool {
	return slices.ContainsFunc([]string{
		"/pkg/mod/", "@v", "/vendor/", "/go/src/", "/src/runtime/", "redrive/internal/engine/", // Go
		"site-packages", "dist-packages", "/lib/python", "<frozen", // Python
		"node_modules", "node:", "(internal/", "<anonymous>", // JavaScript
		"/gems/", "/lib/ruby/", "<internal:", ") lib/", ") app/", // Ruby, and how Rails names a gem: "rack (3.0.8) lib/rack.rb"
		"Native Method", "[internal function", "phar://", "/usr/share/php/", // Java, PHP
		"/rustc/", "cargo/registry/", "cargo/git/checkouts/", "/library/std/src/", "/library/core/src/", // Rust
	}, func(mark string) bool { return strings.Contains(place, mark) })
}

// isLibraryName reports whether a Java or .NET name belongs to the platform or to a
// framework that is on every stack.
func isLibraryName(name string) bool {
	return slices.ContainsFunc([]string{
		"java.", "javax.", "jakarta.", "jdk.", "sun.", "com.sun.", "kotlin.", "kotlinx.", "scala.", "groovy.", "clojure.", "akka.",
		"org.springframework.", "org.apache.", "org.hibernate.", "org.postgresql.", "org.mariadb.", "org.h2.", "org.jooq.", "org.flywaydb.",
		"org.quartz.", "org.jobrunr.", "org.eclipse.", "org.jboss.", "org.wildfly.", "org.slf4j.", "org.gradle.", "org.codehaus.", "org.junit.",
		"ch.qos.", "com.zaxxer.", "com.mysql.", "com.fasterxml.", "com.google.", "com.mongodb.", "com.rabbitmq.", "com.amazonaws.",
		"software.amazon.", "oracle.", "io.netty.", "io.lettuce.", "io.grpc.", "io.micrometer.", "io.quarkus.", "io.micronaut.", "io.vertx.",
		"io.ktor.", "reactor.", "okhttp3.", "okio.", "retrofit2.", "feign.", "redis.clients.", "liquibase.",
		"System.", "Microsoft.", "Npgsql.", "MySqlConnector.", "MySql.", "Oracle.", "MongoDB.", "StackExchange.", "RabbitMQ.", "Confluent.",
		"Azure.", "Amazon.", "Google.", "Grpc.", "Newtonsoft.", "Dapper.", "Polly.", "Hangfire.", "Quartz.", "MassTransit.", "NServiceBus.",
		"MediatR.", "AutoMapper.", "FluentValidation.", "Serilog.", "NLog.", "Castle.",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
