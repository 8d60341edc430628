"""Modules that stand in for packages which are not installed and take no part in what is recorded."""

import importlib.abc
import importlib.machinery
import types
from abc import ABCMeta


class Meta(ABCMeta):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing

    def __or__(cls, other):
        return cls

    __ror__ = __or__


class Nothing(metaclass=Meta):
    def __init__(self, *_, **__):
        pass

    def __call__(self, *values, **_):
        return values[0] if values and callable(values[0]) else self

    def __class_getitem__(cls, _):
        return cls


class Module(types.ModuleType):
    __path__ = []
    __version__ = "0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, absent):
        self.absent = absent

    def find_spec(self, name, path, target=None):
        if any(name == absent or name.startswith(absent + ".") for absent in self.absent):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        pass
