// Result and Error: how anything that may fail says so.
//
// An Error names a code (mapped once to exit status and HTTP status, see docs/errors.md), says what
// failed and why in `message`, and what the reader can do about it in `hint`. Exceptions stop at
// the edges of the libraries that throw them; inside Muster only Result travels.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace muster {

enum class ErrorCode {
  kInvalid,      // the input is wrong: fix it and try again
  kUsage,        // the command line is wrong
  kNotFound,     // a name that does not exist
  kDenied,       // not permitted
  kConflict,     // true, but not with the present state
  kUnavailable,  // the other side does not answer
  kTimeout,      // it did not answer in time
  kInternal,     // ours: please report it
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string hint;
  std::string path = {};        // the parameter or key that is meant, where there is one
  std::vector<Error> all = {};  // every mistake of an input that has several, this one first
};

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> Fail(ErrorCode code, std::string message, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(hint)});
}

// The status with which a program ends that could not go on because of this error.
int ExitStatus(ErrorCode code);

// "cannot open a.yaml: no such file (check the path)", without control characters.
std::string Describe(const Error& error);

}  // namespace muster
