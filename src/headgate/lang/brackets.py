"""Tells window clauses from subscripts: `n [RANGE 5 minutes]` is a clause, `prices[range]` is a subscript."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

#: The words of the clause. Any of them may come first.
WORDS = ("RANGE", "SLIDE", "WA", "WATTR", "RATTR", "SATTR", "PA")

#: The type of the bracket that opens a clause. Nothing else in the language has it.
CLAUSE_START = TokenType.BLOCK_START

#: After one of these words the name before it is part of an expression, as in `prices[range IS NULL]`.
_OPERATORS = frozenset(("AND", "OR", "IS", "IN", "NOT", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "DIV", "MOD"))
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_NOT_IN_A_NAME = (TokenType.NUMBER, TokenType.COMMA, *_QUOTED)
_NOTHING = Token(TokenType.SENTINEL, "")


def word_of(token: Token) -> str:
    """The token in upper case if it is a bare word, else "".

    >>> word_of(Token.var("range")), word_of(Token.string("range"))
    ('RANGE', '')
    """
    bare = token and token.token_type not in _QUOTED and token.text.isidentifier()
    return token.text.upper() if bare else ""


def mark_clauses(tokens: list[Token]) -> list[Token]:
    """The tokens. Each bracket that opens a window clause now has the type CLAUSE_START.

    >>> from sqlglot import tokenize
    >>> tokens = mark_clauses(tokenize("a[range], b [RANGE 5]"))
    >>> [token.start for token in tokens if token.token_type == CLAUSE_START]
    [12]
    """
    return [
        Token(CLAUSE_START, token.text, token.line, token.col, token.start, token.end, token.comments)
        if token.token_type == TokenType.L_BRACKET and _opens_clause(tokens, index)
        else token
        for index, token in enumerate(tokens)
    ]


def _opens_clause(tokens: list[Token], index: int) -> bool:
    first, second, third, fourth = (_at(tokens, index + steps) for steps in (1, 2, 3, 4))
    if word_of(first) not in WORDS:
        # No subscript looks like this: it is a misspelt word of the clause.
        return first.token_type == TokenType.VAR and second.token_type == TokenType.NUMBER
    if second.token_type == TokenType.DASH:
        return third.token_type == TokenType.NUMBER and _follows_a_word(fourth)
    if second.token_type == TokenType.L_PAREN:
        return _follows_a_word(_after_parentheses(tokens, index + 3))
    return _follows_a_word(second)


def _follows_a_word(token: Token) -> bool:
    """Whether a token may follow a word of the clause or its argument, but not a name in an expression."""
    if not token or token.token_type in _NOT_IN_A_NAME or token.text[:1].isdigit():
        return True
    return bool(word_of(token)) and word_of(token) not in _OPERATORS


def _after_parentheses(tokens: list[Token], index: int) -> Token:
    depth = 1
    while depth and (token := _at(tokens, index)):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        index += 1
    return _at(tokens, index)


def _at(tokens: list[Token], index: int) -> Token:
    return tokens[index] if index < len(tokens) else _NOTHING
