"""One module a format that can be imported. It ends with a call of `cuzklab.ingest.registry.importer`."""
