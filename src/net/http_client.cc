#include "net/http_client.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace muster::net {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Parser = http::response_parser<http::string_body>;

constexpr std::uint64_t kMostBodyBytes = std::uint64_t{1} << 30;
constexpr std::uint32_t kMostHeaderBytes = 64U << 10;
constexpr std::size_t kReadBytes = std::size_t{64} << 10;

bool MayRepeat(std::string_view method) {
  constexpr std::array kIdempotent = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
  return std::find(kIdempotent.begin(), kIdempotent.end(), method) != kIdempotent.end();
}

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

Result<std::string> Serialise(const Request& request, std::string_view host) {
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method,
                                EncodeTarget(request.path, request.query), host);
  for (const auto& header : request.headers) {
    if (header.name.empty() || HasControl(header.name) || HasControl(header.value)) {
      return Fail(ErrorCode::kInvalid, "the header \"" + header.name +
                                           "\" holds a line break or another control character");
    }
    fmt::format_to(std::back_inserter(out), "{}: {}\r\n", header.name, header.value);
  }
  const bool has_body = !request.body.empty() || request.method == "POST" ||
                        request.method == "PUT" || request.method == "PATCH";
  if (has_body) {
    fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", request.body.size());
  }
  out += "\r\n";
  out += request.body;
  return out;
}

Response Convert(Parser& parser) {
  auto& message = parser.get();
  Response out{.status = static_cast<int>(message.result_int()),
               .content_type = std::string(message[http::field::content_type]),
               .body = std::move(message.body())};
  for (const auto& field : message) {
    out.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  return out;
}

}  // namespace

struct HttpClient::Call {
  const Request& request;
  const std::function<bool(std::string_view)>* on_chunk = nullptr;
  int timeout_ms = 0;
  std::int64_t deadline_ns = 0;  // 0: none for the whole
  bool repeatable = false;       // a second try is known to do no harm
  std::string bytes{};
  std::string* ahead = nullptr;  // takes what comes behind a status of 101
};

HttpClient::HttpClient(Endpoint endpoint)
    : endpoint_(std::move(endpoint)), where_(Describe(endpoint_)) {}

Result<Response> HttpClient::Send(const Request& request, int timeout_ms) {
  Call call{.request = request, .timeout_ms = timeout_ms};
  if (timeout_ms > 0)
    call.deadline_ns = clock_.MonotonicNs() + std::int64_t{timeout_ms} * 1'000'000;
  return Perform(call);
}

Result<Response> HttpClient::Stream(const Request& request, int timeout_ms,
                                    const std::function<bool(std::string_view)>& on_chunk) {
  Call call{.request = request, .on_chunk = &on_chunk, .timeout_ms = timeout_ms};
  return Perform(call);
}

Result<HttpClient::Switched> HttpClient::Switch(const Request& request, int timeout_ms) {
  Switched out;
  Call call{.request = request, .timeout_ms = timeout_ms, .ahead = &out.ahead};
  if (timeout_ms > 0)
    call.deadline_ns = clock_.MonotonicNs() + std::int64_t{timeout_ms} * 1'000'000;
  auto response = Perform(call);
  if (!response) return tl::unexpected(response.error());
  out.response = std::move(*response);
  if (out.response.status == 101) out.line = std::exchange(line_, {});
  return out;
}

Result<Response> HttpClient::Perform(Call& call) {
  auto bytes = Serialise(call.request, endpoint_.unix_path.empty() ? where_ : "localhost");
  if (!bytes) return tl::unexpected(bytes.error());
  call.bytes = std::move(*bytes);
  for (;;) {
    const bool kept = line_.socket.open() && line_.wire.Quiet();
    if (!kept) {
      if (auto connected = Connect(call); !connected) return tl::unexpected(connected.error());
    }
    call.repeatable = true;
    auto sent = SendAll(call);
    // A server that has heard enough (413) answers and stops reading: its answer is worth more than
    // the failed send.
    const bool begun = !call.repeatable;
    if (begun) call.repeatable = MayRepeat(call.request.method);
    const bool listens = sent || (begun && sent.error().code == ErrorCode::kUnavailable);
    auto answer = listens ? ReadAnswer(call) : tl::unexpected(sent.error());
    if (answer) return answer;
    line_ = {};
    const bool closed_on_us = answer.error().code == ErrorCode::kUnavailable;
    if (!kept || !call.repeatable || !closed_on_us) return answer;
  }
}

Result<void> HttpClient::Connect(Call& call) {
  line_ = {};
  auto opened = Dial(endpoint_, tls_, call.timeout_ms);
  if (!opened) return tl::unexpected(opened.error());
  line_ = std::move(*opened);
  receive_timeout_ms_ = 0;
  send_timeout_ms_ = call.timeout_ms;
  return {};
}

void HttpClient::LimitWait(int option, int& present_ms, int timeout_ms) {
  if (present_ms == timeout_ms) return;
  SetSocketTimeout(line_.socket.get(), option, timeout_ms);
  present_ms = timeout_ms;
}

tl::unexpected<Error> HttpClient::Lost(const std::string& how) const {
  return Fail(ErrorCode::kUnavailable, where_ + " " + how,
              "look whether musterd is still running; what was asked for may have been done");
}

tl::unexpected<Error> HttpClient::Late() const {
  return Fail(ErrorCode::kTimeout, where_ + " did not answer in time",
              "try again; what was asked for may have been done");
}

Result<void> HttpClient::SendAll(Call& call) {
  LimitWait(SO_SNDTIMEO, send_timeout_ms_, call.timeout_ms);
  std::string_view rest = call.bytes;
  while (!rest.empty()) {
    const auto sent = line_.wire.Write(rest);
    if (sent.state == Wire::State::kFailed || sent.state == Wire::State::kEnd) {
      return Lost("closed the connection");
    }
    if (sent.state != Wire::State::kMoved) return Late();
    rest.remove_prefix(sent.bytes);
    call.repeatable = false;
    if (call.deadline_ns != 0 && !rest.empty() && clock_.MonotonicNs() >= call.deadline_ns) {
      return Late();
    }
  }
  return {};
}

Result<Response> HttpClient::ReadAnswer(Call& call) try {
  Parser parser;
  parser.eager(true);
  parser.skip(call.request.method == "HEAD");
  parser.header_limit(kMostHeaderBytes);
  parser.body_limit(call.on_chunk == nullptr ? boost::optional<std::uint64_t>(kMostBodyBytes)
                                             : boost::none);
  std::string input;  // read, but not parsed yet
  const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);
  int wait_ms = call.timeout_ms;
  while (!parser.is_done()) {
    LimitWait(SO_RCVTIMEO, receive_timeout_ms_, wait_ms);
    const auto got = line_.wire.Read(buffer.get(), kReadBytes);
    error_code error;
    if (got.state == Wire::State::kEnd || got.state == Wire::State::kFailed) {
      if (!parser.got_some() && input.empty())
        return Lost("closed the connection without an answer");
      parser.put_eof(error);
      // A cut is no end: whoever made it may have wanted the rest not to be seen.
      if (error || got.state == Wire::State::kFailed)
        return Lost("closed the connection in the middle of its answer");
      break;
    }
    call.repeatable = false;
    if (got.state != Wire::State::kMoved) return Late();
    input.append(buffer.get(), got.bytes);
    std::size_t taken = 0;
    do {
      taken = parser.put(asio::buffer(input), error);
      input.erase(0, taken);
    } while (!error && taken > 0 && !input.empty() && !parser.is_done());
    if (error && error != http::error::need_more) {
      return Lost("sent something that is not HTTP: " + error.message());
    }
    auto& message = parser.get();
    if (call.on_chunk != nullptr && message.result_int() < 300 && !message.body().empty()) {
      const bool more = (*call.on_chunk)(message.body());
      message.body().clear();
      if (!more) {
        line_ = {};
        return Convert(parser);
      }
    }
    if (call.deadline_ns == 0 || parser.is_done()) continue;
    const std::int64_t left_ns = call.deadline_ns - clock_.MonotonicNs();
    if (left_ns <= 0) return Late();
    wait_ms = static_cast<int>(left_ns / 1'000'000) + 1;
  }
  if (call.ahead != nullptr && parser.get().result_int() == 101) {
    *call.ahead = std::move(input);
    return Convert(parser);
  }
  if (!parser.keep_alive() || !input.empty()) line_ = {};
  return Convert(parser);
} catch (const std::exception& error) {  // a length that no memory can hold
  return Lost(std::string("sent an answer that cannot be read: ") + error.what());
}

}  // namespace muster::net
