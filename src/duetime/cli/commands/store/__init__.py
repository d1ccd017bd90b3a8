"""Commands that open the store directly, with the settings of `serve`."""
