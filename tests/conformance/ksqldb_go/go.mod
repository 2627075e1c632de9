module moldau.test/ksqldb

go 1.21

require github.com/thmeitz/ksqldb-go v0.0.4

require (
	github.com/Masterminds/log-go v0.4.0 // indirect
	github.com/antlr/antlr4/runtime/Go/antlr v0.0.0-20211106181442-e4c1a74c66bd // indirect
	github.com/mitchellh/mapstructure v1.4.2 // indirect
	github.com/opentracing/opentracing-go v1.2.0 // indirect
	golang.org/x/net v0.0.0-20210805182204-aaa1db679c0d // indirect
	golang.org/x/text v0.3.7 // indirect
)
