/* Shared by the parts of the parser. */
#ifndef XTRADB_HOST_PARSER_H
#define XTRADB_HOST_PARSER_H

#include "ast.h"
#include "lexer.h"

struct parser {
    struct lexer lexer;
    struct token token, ahead;
    bool has_ahead, failed;
    struct arena *arena;
    session *session;
    unsigned depth;
    size_t last_end; /* end of the token consumed last */
};

/* parser.c */
void p_advance(struct parser *p);
const struct token *p_peek(struct parser *p);       /* the token after the current one */
bool p_is(const struct parser *p, const char *word);  /* current token is this keyword */
bool p_accept(struct parser *p, const char *word);
bool p_accept2(struct parser *p, const char *word, const char *word2); /* both or none */
void p_expect(struct parser *p, const char *word);
bool p_is_op(const struct parser *p, const char *op);
bool p_accept_op(struct parser *p, const char *op);
void p_expect_op(struct parser *p, const char *op);
void p_syntax_error(struct parser *p);
void p_error(struct parser *p, unsigned code, ...);
const char *p_name(struct parser *p);                 /* identifier */
const char *p_text(struct parser *p);                 /* string literal */
const char *p_name_or_text(struct parser *p);
uint64_t p_number(struct parser *p);
struct table_name p_table_name(struct parser *p);
bool p_at_end(const struct parser *p);
/* Grows an arena array: returns the place for element number `count`. */
void *p_grow(struct parser *p, void *array, uint32_t count, size_t size);
#define P_PUSH(p, array, count) \
    (*((array) = p_grow(p, array, count, sizeof *(array)), &(array)[(count)++]))

/* parser_expr.c */
struct expr *p_expr(struct parser *p);
struct expr_list p_expr_list(struct parser *p);
struct expr *p_literal(struct parser *p);             /* NULL: no literal here */
struct expr *p_new_expr(struct parser *p, enum expr_kind kind);

/* parser_dml.c */
struct select *p_select(struct parser *p);
void p_dml(struct parser *p, struct stmt *st);        /* INSERT REPLACE UPDATE DELETE */

/* parser_ddl.c, parser_column.c */
void p_create_table(struct parser *p, struct stmt *st);
void p_add_keys(struct parser *p, struct stmt *st);   /* ALTER TABLE … ADD */
void p_create_index(struct parser *p, struct stmt *st, bool unique);
void p_column_spec(struct parser *p, struct column_spec *c, struct create_table *ct);
bool p_column_type(struct parser *p, struct column_spec *c);

/* parser_admin.c */
void p_show(struct parser *p, struct stmt *st);
void p_set(struct parser *p, struct stmt *st);

#endif
