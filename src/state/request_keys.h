// RequestKeys: which requests with a key of their sender's choice were carried out, and the answer.
//
// Keys are a user's own: nobody learns of, or is answered by, another's. Each user has the latest
// kOfUser of them, and kBytesOfUser of answers; where all users together have too many, the one
// with the most gives one up, so that nobody pushes out another's by asking a lot. Finding one
// costs two look-ups. A fold of the journal as everything in State, so it survives restarts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "model/event.h"

namespace muster::state {

struct RequestRecord {
  model::RequestAnswered said;
  model::JobNumber job = 0;  // the first that it submitted; 0: it submitted none

  // Whether a request with this digest is the same one. Earlier builds took the digest of the body
  // alone and wrote less of it: of theirs the key alone counts.
  bool IsOf(const std::string& digest) const;
};

class RequestKeys {
 public:
  static constexpr std::size_t kOfUser = 1'000;
  static constexpr std::size_t kBytesOfUser = std::size_t{1} << 20;
  static constexpr std::size_t kInAll = 50'000;
  static constexpr std::size_t kDigestSize = 32;

  void Add(RequestRecord record);
  // As JobSubmitted carries it: "key#0#digest". Other numbers are further jobs of one request.
  void AddSubmitted(const std::string& user, const std::string& text, model::JobNumber job);
  const RequestRecord* Find(const std::string& user, const std::string& key) const;
  std::size_t size() const { return size_; }

  // Oldest first within each user.
  std::vector<RequestRecord> List() const;

 private:
  struct OfUser {
    std::map<std::string, RequestRecord> by_key;
    std::deque<std::string> order;
    std::size_t bytes = 0;
  };
  void DropOldest(OfUser& of);

  std::map<std::string, OfUser> users_;
  std::size_t size_ = 0;
};

}  // namespace muster::state
