#include "base/result.h"

namespace muster {

int ExitStatus(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return 2;
    case ErrorCode::kNotFound:
      return 3;
    case ErrorCode::kDenied:
      return 4;
    case ErrorCode::kInvalid:
    case ErrorCode::kConflict:
      return 5;
    case ErrorCode::kUnavailable:
      return 6;
    case ErrorCode::kTimeout:
      return 7;
    case ErrorCode::kInternal:
      return 1;
  }
  return 1;
}

std::string Describe(const Error& error) {
  std::string out;
  for (const char c :
       error.hint.empty() ? error.message : error.message + " (" + error.hint + ")") {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out += c == '\n' ? "\n" : "?";  // what a file holds never reaches the terminal as a command
    }
  }
  return out;
}

}  // namespace muster
