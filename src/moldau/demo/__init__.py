"""The demo: a made-up shop whose orders, payments and clicks flow through topics, schemas and Spark."""
