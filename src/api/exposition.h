// Exposition: figures in the text format of Prometheus.
//
// Each name is headed once, by HELP and TYPE, and its series follow at once, as the format wants.
// Labels are a name and a value each, in the order given; what a value holds is escaped, so that a
// queue with a strange name cannot forge a line. Numbers are written so that reading them gives the
// same number.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/histogram.h"

namespace muster::api {

class Exposition {
 public:
  using Label = std::pair<std::string_view, std::string_view>;
  using Labels = std::initializer_list<Label>;

  void Head(std::string_view name, std::string_view type, std::string_view help);
  void Value(std::string_view name, double value) { Value(name, {}, value); }
  void Value(std::string_view name, Labels labels, double value);
  void Buckets(std::string_view name, Labels labels, const Histogram& histogram);
  std::string Take() { return std::move(text_); }

 private:
  void Line(std::string_view name, std::string_view suffix, Labels labels, std::string_view bound,
            double value);

  std::string text_;
};

}  // namespace muster::api
