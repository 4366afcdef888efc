"""The server that the program was told of, by its environment."""

import os
import pathlib


class Server:
    """Where it listens and how to log in."""

    def __init__(self, environment=os.environ):
        self.host = environment["CDC_CLIENTS_HOST"]
        self.port = int(environment["CDC_CLIENTS_PORT"])
        self.user = environment["CDC_CLIENTS_USER"]
        self.password = environment["CDC_CLIENTS_PASSWORD"]
        self.certificate = environment["CDC_CLIENTS_CERTIFICATE"]
        self.other_certificate = environment["CDC_CLIENTS_OTHER_CERTIFICATE"]
        self.directory = pathlib.Path(environment["CDC_CLIENTS_DIRECTORY"])
