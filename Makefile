# Needs an active environment with `pip install -e '.[test]'`. Works from a checkout of any name.

.PHONY: check style types test full format docs

check: style types test  ## what has to pass before a commit

style:
	ruff format --check .
	ruff check .

types:
	.ci/types

test:
	pytest

full:  ## the slow suites
	pytest -m full

format:
	ruff check --fix .
	ruff format .

docs:  ## write the pages that are generated
	python -m msmigrate.mappings.state_names
	python -m msmigrate.reports.mapping_table docs/mappings.md
	python -m msmigrate.reports.parity_json docs/report.schema.json
	python -m msmigrate.cli.docs_pages docs
