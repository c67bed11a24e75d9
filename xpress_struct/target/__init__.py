"""The target model: how it is fetched, loaded and run."""
