// Libpq: the few functions of PostgreSQL's client library that we call, found while the program
// runs.
//
// Nobody who keeps the state in SQLite needs the library or its headers, so the declarations are
// ours; they are the ABI of libpq.so.5, unchanged since PostgreSQL 8.2. The library stays loaded
// until the process ends: what it loads in turn (OpenSSL, Kerberos) is not safe to unload.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::state {

struct PgConnection;  // PGconn
struct PgResult;      // PGresult

inline constexpr int kPgConnectionOk = 0;
inline constexpr int kPgCommandOk = 1;
inline constexpr int kPgTuplesOk = 2;
inline constexpr int kPgFieldSqlState = 'C';
inline constexpr int kPgFieldMessage = 'M';

struct Libpq {
  PgConnection* (*connect)(const char* const* keywords, const char* const* values, int expand);
  int (*status)(const PgConnection*);
  char* (*error_message)(const PgConnection*);
  char* (*database)(const PgConnection*);
  char* (*host)(const PgConnection*);
  void (*(*set_notice_processor)(PgConnection*, void (*)(void*, const char*), void*))(void*,
                                                                                      const char*);
  void (*finish)(PgConnection*);
  PgResult* (*exec)(PgConnection*, const char* script);
  PgResult* (*exec_params)(PgConnection*, const char* sql, int count, const unsigned* types,
                           const char* const* values, const int* lengths, const int* formats,
                           int result_format);
  PgResult* (*prepare)(PgConnection*, const char* name, const char* sql, int count,
                       const unsigned* types);
  PgResult* (*exec_prepared)(PgConnection*, const char* name, int count, const char* const* values,
                             const int* lengths, const int* formats, int result_format);
  int (*result_status)(const PgResult*);
  char* (*result_field)(const PgResult*, int field);
  int (*rows)(const PgResult*);
  char* (*value)(const PgResult*, int row, int column);
  int (*length)(const PgResult*, int row, int column);
  void (*clear)(PgResult*);
};

Result<Libpq> LoadLibpq(const std::string& library = "libpq.so.5");

}  // namespace muster::state
