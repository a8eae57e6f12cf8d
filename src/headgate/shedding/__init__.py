"""What to drop when more arrives than can be processed: statistics, costs, planners. Decides; never drops."""
