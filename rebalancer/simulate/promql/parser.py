"""From text to tree, by recursive descent with the precedence of PromQL."""

from __future__ import annotations

import re
from dataclasses import replace

from rebalancer.simulate.promql.syntax import (
    Aggregation,
    Binary,
    Call,
    Expression,
    Matcher,
    Matching,
    Negation,
    Number,
    PromqlError,
    Selector,
    Subquery,
    Text,
    Token,
    duration_s,
    tokens_of,
    unquoted,
)

AGGREGATORS = frozenset(("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "quantile", "topk", "bottomk"))
COMPARISONS = frozenset(("==", "!=", ">", "<", ">=", "<="))
SET_OPERATORS = frozenset(("and", "or", "unless"))
_PARAMETER = frozenset(("quantile", "topk", "bottomk"))
_LEVELS: tuple[frozenset[str], ...] = (
    frozenset(("or",)),
    frozenset(("and", "unless")),
    COMPARISONS,
    frozenset(("+", "-")),
    frozenset(("*", "/", "%")),
)
_KEYWORDS = frozenset(("by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset"))


def parse(text: str) -> Expression:
    """Raises PromqlError."""
    parser = _Parser(text)
    tree = parser.binary(0)
    parser.expect("")
    return tree


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = tokens_of(text)
        self._at = 0

    # ---- tokens -------------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._now
        self._at += 1
        return token

    def _accept(self, *texts: str) -> str:
        if self._now.kind in ("operator", "name") and self._now.text in texts:
            return self._next().text
        return ""

    def expect(self, text: str) -> None:
        token = self._now
        if text == "" and token.kind == "end":
            return
        if token.kind not in ("operator", "name") or token.text != text:
            raise self._unexpected(text or "the end of the query")
        self._at += 1

    def _unexpected(self, wanted: str) -> PromqlError:
        token = self._now
        return PromqlError(f"parse error at char {token.position + 1}: unexpected {token.text or 'end of input'!r}, expected {wanted}")

    def _duration(self) -> float:
        if self._now.kind != "duration":
            raise self._unexpected("a duration")
        return duration_s(self._next().text)

    # ---- expressions --------------------------------------------------------------------------------------------------

    def binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self.binary(level + 1)
        while operator := self._accept(*_LEVELS[level]):
            as_bool = bool(self._accept("bool"))
            if as_bool and operator not in COMPARISONS:
                raise PromqlError("parse error: bool modifier can only be used on comparison operators")
            matching = self._matching()
            left = Binary(operator, left, self.binary(level + 1), as_bool, matching)
        return left

    def _unary(self) -> Expression:
        if self._accept("-"):
            return Negation(self._unary())
        if self._accept("+"):
            return self._unary()
        base = self._postfix()
        if self._accept("^"):
            matching = self._matching()
            return Binary("^", base, self._unary(), False, matching)
        return base

    def _matching(self) -> Matching:
        kind = self._accept("on", "ignoring")
        if not kind:
            return Matching()
        labels = self._label_list()
        group = self._accept("group_left", "group_right")
        include = self._label_list() if group and self._now.text == "(" else ()
        return Matching(labels, kind == "on", group.removeprefix("group_"), include)

    def _label_list(self) -> tuple[str, ...]:
        self.expect("(")
        labels: list[str] = []
        while not self._accept(")"):
            if self._now.kind != "name":
                raise self._unexpected("a label")
            labels.append(self._next().text)
            if not self._accept(","):
                self.expect(")")
                break
        return tuple(labels)

    def _postfix(self) -> Expression:
        tree = self._primary()
        while True:
            if self._accept("["):
                tree = self._range(tree)
            elif self._accept("offset"):
                negative = bool(self._accept("-"))
                shift = self._duration() * (-1 if negative else 1)
                if not isinstance(tree, Selector | Subquery):
                    raise PromqlError("parse error: offset modifier must be preceded by a selector or a subquery")
                tree = replace(tree, offset_s=shift)
            elif self._now.text == "@" and self._now.kind == "operator":
                raise PromqlError("the @ modifier is not simulated")
            else:
                return tree

    def _range(self, tree: Expression) -> Expression:
        length = self._duration()
        if self._accept(":"):
            step = self._duration() if self._now.kind == "duration" else None
            self.expect("]")
            return Subquery(tree, length, step)
        self.expect("]")
        if not isinstance(tree, Selector) or tree.range_s is not None:
            raise PromqlError("parse error: ranges only allowed for vector selectors")
        return replace(tree, range_s=length)

    def _primary(self) -> Expression:
        token = self._now
        if token.kind == "number":
            self._at += 1
            return Number(float(int(token.text, 16)) if token.text.lower().startswith("0x") else float(token.text))
        if token.kind == "string":
            self._at += 1
            return Text(unquoted(token.text))
        if self._accept("("):
            inner = self.binary(0)
            self.expect(")")
            return inner
        if token.text == "{" and token.kind == "operator":
            return self._selector("")
        if token.kind == "name" and token.text not in _KEYWORDS:
            return self._named()
        raise self._unexpected("an expression")

    def _named(self) -> Expression:
        name = self._next().text
        if name.lower() in ("inf", "nan"):
            return Number(float(name))
        if name in AGGREGATORS and self._now.text in ("(", "by", "without"):
            return self._aggregation(name)
        if self._now.text == "(" and self._now.kind == "operator":
            self._at += 1
            arguments: list[Expression] = []
            while not self._accept(")"):
                arguments.append(self.binary(0))
                if not self._accept(","):
                    self.expect(")")
                    break
            return Call(name, tuple(arguments))
        return self._selector(name)

    def _aggregation(self, operator: str) -> Expression:
        grouping = self._accept("by", "without")
        labels = self._label_list() if grouping else ()
        self.expect("(")
        first = self.binary(0)
        parameter: Expression | None = None
        if operator in _PARAMETER:
            self.expect(",")
            parameter, first = first, self.binary(0)
        self.expect(")")
        if not grouping and (grouping := self._accept("by", "without")):
            labels = self._label_list()
        return Aggregation(operator, first, parameter, labels, grouping == "without")

    def _selector(self, name: str) -> Expression:
        matchers: list[Matcher] = []
        if self._accept("{"):
            while not self._accept("}"):
                matchers.append(self._matcher())
                if not self._accept(","):
                    self.expect("}")
                    break
        named = next((m for m in matchers if m.name == "__name__" and m.operator == "="), None)
        if named is not None and not name:
            name = named.value
            matchers.remove(named)
        if not name and not any(m.name == "__name__" and not m.admits("") for m in matchers):
            raise PromqlError("selectors that say nothing of the metric's name are not simulated")
        return Selector(name, tuple(matchers))

    def _matcher(self) -> Matcher:
        if self._now.kind != "name":
            raise self._unexpected("a label")
        label = self._next().text
        operator = self._accept("=", "!=", "=~", "!~")
        if not operator:
            raise self._unexpected("one of = != =~ !~")
        if self._now.kind != "string":
            raise self._unexpected("a quoted string")
        value = unquoted(self._next().text)
        if operator in ("=~", "!~"):
            try:
                re.compile(value)
            except re.error as error:
                raise PromqlError(f"parse error: error parsing regexp {value!r}: {error}") from error
        return Matcher(label, operator, value)
