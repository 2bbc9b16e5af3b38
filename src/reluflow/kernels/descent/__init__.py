"""Steps of gradient descent: on weights, in Gram form, in batches."""
