"""The parts of the System tab: settings, licence, base models, disk, guides and versions."""
