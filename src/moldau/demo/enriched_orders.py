"""What is deployed of the application enriched-orders: `moldau streams describe` shows it in the platform."""

from moldau.demo.applications import enriched_orders

builder = enriched_orders()
