package controlplane

import "context"

// RequestUploadURL returns the address where the sources of a deployment can be uploaded.
func (s server) RequestUploadURL(ctx context.Context, request RequestUploadURLRequestObject) (RequestUploadURLResponseObject, error) {
	to, grant, err := s.Deployments.Upload(ctx, ref(ctx, request.DeploymentID), s.BaseURL(ctx))
	return RequestUploadURL200JSONResponse{UploadURL: grant.URL, ObjectPath: to.Path(), UploadHeaders: grant.Headers}, err
}
