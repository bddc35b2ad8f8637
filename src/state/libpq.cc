#include "state/libpq.h"

#include <dlfcn.h>

namespace muster::state {

Result<Libpq> LoadLibpq(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return Fail(ErrorCode::kUnavailable,
                "PostgreSQL's client library cannot be loaded: " +
                    std::string(why == nullptr ? library : why),
                "install it (Debian: libpq5), or leave out --store to keep the state in SQLite");
  }
  Libpq found{};
  const char* lacking = nullptr;
  const auto find = [&]<typename F>(F& function, const char* name) {
    function = reinterpret_cast<F>(::dlsym(handle, name));
    if (function == nullptr) lacking = name;
  };
  find(found.connect, "PQconnectdbParams");
  find(found.status, "PQstatus");
  find(found.error_message, "PQerrorMessage");
  find(found.database, "PQdb");
  find(found.host, "PQhost");
  find(found.set_notice_processor, "PQsetNoticeProcessor");
  find(found.finish, "PQfinish");
  find(found.exec, "PQexec");
  find(found.exec_params, "PQexecParams");
  find(found.prepare, "PQprepare");
  find(found.exec_prepared, "PQexecPrepared");
  find(found.result_status, "PQresultStatus");
  find(found.result_field, "PQresultErrorField");
  find(found.rows, "PQntuples");
  find(found.value, "PQgetvalue");
  find(found.length, "PQgetlength");
  find(found.clear, "PQclear");
  if (lacking == nullptr) return found;
  return Fail(ErrorCode::kUnavailable,
              library + " is no client library of PostgreSQL: it has no " + lacking,
              "install libpq5 of PostgreSQL 9.0 or later");
}

}  // namespace muster::state
