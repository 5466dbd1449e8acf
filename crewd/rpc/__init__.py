"""The outside contract over gRPC: the only place that knows grpc and protobuf."""
